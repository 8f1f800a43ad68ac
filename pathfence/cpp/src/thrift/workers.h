// SPDX-License-Identifier: Apache-2.0
// Threads that run what the fence has let in.
//
// Problem: Thrift's own thread manager wakes a thread while it holds the lock which that thread needs first, so that it
// sleeps a second time; and it wakes the one that has slept longest, whose caches are the coldest.
// Method: who became idle last is next; it is given its task under the lock, and woken after that.
// Limits: a task may not wait for its own thread's end, in stop() or resize().
#pragma once

#include <thrift/concurrency/ThreadFactory.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

namespace temper::pathfence::thrift {

class Workers {
public:
    using Task = std::shared_ptr<apache::thrift::concurrency::Runnable>;
    using ThreadFactory = apache::thrift::concurrency::ThreadFactory;
    enum class Phase { fresh, started, stopping, stopped };
    struct Counts {
        std::size_t wanted, threads, idle, pending;
    };

    explicit Workers(std::size_t threads) : wanted_(threads) {}
    ~Workers() { stop(); }
    Workers(const Workers&) = delete;
    Workers& operator=(const Workers&) = delete;

    // Throws what the thread factory does; it can be tried again then.
    void start();
    // Has what was added run first, and waits for the threads' end. For good.
    void stop();
    // To so many threads more, or fewer, for whose end it waits. Throws InvalidArgumentException where there are not so
    // many, IllegalStateException after stop(), and what the thread factory does: then there are as many as it could make.
    void resize(std::ptrdiff_t by);
    // Throws IllegalStateException before start() and after stop().
    void add(Task task);

    Phase phase() const { return phase_; }
    Counts counts() const;
    std::shared_ptr<ThreadFactory> factory() const;
    // Of the threads that are started from now on.
    void factory(std::shared_ptr<ThreadFactory> factory);

private:
    struct Worker;
    using Lock = std::unique_lock<std::mutex>;

    void work(Worker& worker);
    bool leaves() const { return staff_.size() - left_ > wanted_ && (phase_ != Phase::stopping || pending_.empty()); }
    void hire();
    void adjust(Lock& lock);

    mutable std::mutex mutex_;
    std::condition_variable changed_;  // a worker has left, or as many are wanted as there are
    std::shared_ptr<ThreadFactory> factory_ = std::make_shared<ThreadFactory>();
    std::atomic<Phase> phase_{Phase::fresh};  // changes under the lock
    std::size_t wanted_;
    std::vector<std::shared_ptr<Worker>> staff_;
    std::size_t left_ = 0;                       // of staff_
    std::vector<std::shared_ptr<Worker>> idle_;  // the last is next
    std::deque<Task> pending_;
};

}  // namespace temper::pathfence::thrift
