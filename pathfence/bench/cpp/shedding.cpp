// SPDX-License-Identifier: Apache-2.0
#include "shedding.h"

#include <optional>

#include "message.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

// Runs a server's task, or has it answered as refused from a time on.
class Until : public apache::thrift::concurrency::Runnable {
public:
    Until(Clock::time_point refused_from, std::shared_ptr<Runnable> task) : refused_from_(refused_from), task_(std::move(task)) {}

    void run() override {
        std::optional<Refusing> refusing;
        if (Clock::now() >= refused_from_) refusing.emplace();
        task_->run();
    }

private:
    const Clock::time_point refused_from_;
    const std::shared_ptr<Runnable> task_;
};

}  // namespace

SheddingThreadManager::SheddingThreadManager(std::size_t workers, std::size_t most, std::chrono::nanoseconds target)
    : workers_(newSimpleThreadManager(workers)), refusals_(newSimpleThreadManager(1)), most_(most), target_(target) {}

void SheddingThreadManager::add(std::shared_ptr<Runnable> task, std::int64_t, std::int64_t) {
    const Clock::time_point now = Clock::now();
    if (workers_->totalTaskCount() >= most_)
        refusals_->add(std::make_shared<Until>(now, std::move(task)));
    else
        workers_->add(std::make_shared<Until>(now + target_, std::move(task)));
}

void SheddingThreadManager::start() {
    workers_->start();
    refusals_->start();
}

void SheddingThreadManager::stop() {
    workers_->stop();
    refusals_->stop();
}

void SheddingThreadManager::threadFactory(std::shared_ptr<ThreadFactory> value) {
    workers_->threadFactory(value);
    refusals_->threadFactory(value);
}

}  // namespace bench
