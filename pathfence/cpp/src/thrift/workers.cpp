// SPDX-License-Identifier: Apache-2.0
#include "workers.h"

#include <thrift/Thrift.h>
#include <thrift/concurrency/Exception.h>

#include <algorithm>
#include <utility>

namespace temper::pathfence::thrift {

namespace at = apache::thrift;

struct Workers::Worker : at::concurrency::Runnable, std::enable_shared_from_this<Worker> {
    explicit Worker(Workers& w) : workers(w) {}
    void run() override { workers.work(*this); }

    Workers& workers;  // which waits for its threads
    std::shared_ptr<at::concurrency::Thread> runs_on;
    std::condition_variable wake;
    Task task;
    bool called = false;  // to its task, or to leave
    bool left = false;
};

void Workers::start() {
    Lock lock(mutex_);
    if (phase_ != Phase::fresh) return;
    hire();
    phase_ = Phase::started;
}

void Workers::stop() {
    Lock lock(mutex_);
    if (phase_ != Phase::stopped) phase_ = Phase::stopping;
    wanted_ = 0;
    adjust(lock);
    lock.lock();
    phase_ = Phase::stopped;
    // There may have been no thread to run it. What it holds may hold this.
    const auto left = std::exchange(pending_, {});
    lock.unlock();
}

void Workers::resize(std::ptrdiff_t by) {
    Lock lock(mutex_);
    if (phase_ > Phase::started) throw at::concurrency::IllegalStateException("the workers were stopped");
    if (by < 0 && wanted_ < static_cast<std::size_t>(-by)) throw at::concurrency::InvalidArgumentException();
    wanted_ += static_cast<std::size_t>(by);
    if (phase_ == Phase::fresh) return;
    try {
        hire();
    } catch (...) {
        wanted_ = staff_.size() - left_;
        throw;
    }
    adjust(lock);
}

void Workers::add(Task task) {
    std::shared_ptr<Worker> worker;
    {
        const Lock lock(mutex_);
        if (phase_ != Phase::started) throw at::concurrency::IllegalStateException("the workers have not been started, or were stopped");
        if (idle_.empty()) {
            pending_.push_back(std::move(task));
            return;
        }
        worker = std::move(idle_.back());
        idle_.pop_back();
        worker->task = std::move(task);
        worker->called = true;
    }
    worker->wake.notify_one();
}

void Workers::work(Worker& worker) {
    Lock lock(mutex_);
    while (!leaves()) {
        if (pending_.empty()) {
            idle_.push_back(worker.shared_from_this());
            worker.wake.wait(lock, [&] { return std::exchange(worker.called, false); });
        } else {
            worker.task = std::move(pending_.front());
            pending_.pop_front();
        }
        Task task = std::move(worker.task);
        if (!task) continue;
        lock.unlock();
        try {
            task->run();
        } catch (const std::exception& e) {
            at::GlobalOutput.printf("a task threw: %s", e.what());
        } catch (...) {
            at::GlobalOutput.printf("a task threw what is no std::exception");
        }
        task.reset();
        lock.lock();
    }
    worker.left = true;
    ++left_;
    changed_.notify_all();
}

// Starts the threads that are missing.
void Workers::hire() {
    while (staff_.size() - left_ < wanted_) {
        const auto worker = std::make_shared<Worker>(*this);
        auto thread = factory_->newThread(worker);
        thread->start();
        worker->runs_on = std::move(thread);
        staff_.push_back(worker);
    }
}

// Waits until no more threads are left than are wanted: by whoever wants fewest at that time. Gives up the lock.
void Workers::adjust(Lock& lock) {
    changed_.notify_all();
    for (const auto& worker : std::exchange(idle_, {})) {
        worker->called = true;
        worker->wake.notify_one();
    }
    changed_.wait(lock, [&] { return staff_.size() - left_ <= wanted_; });
    const auto stay = std::stable_partition(staff_.begin(), staff_.end(), [](const auto& w) { return w->left; });
    const std::vector<std::shared_ptr<Worker>> gone(staff_.begin(), stay);
    staff_.erase(staff_.begin(), stay);
    left_ -= gone.size();
    lock.unlock();
    for (const auto& worker : gone) std::exchange(worker->runs_on, nullptr)->join();
}

Workers::Counts Workers::counts() const {
    const Lock lock(mutex_);
    return {wanted_, staff_.size() - left_, idle_.size(), pending_.size()};
}

std::shared_ptr<Workers::ThreadFactory> Workers::factory() const {
    const Lock lock(mutex_);
    return factory_;
}

void Workers::factory(std::shared_ptr<ThreadFactory> factory) {
    const Lock lock(mutex_);
    factory_ = std::move(factory);
}

}  // namespace temper::pathfence::thrift
