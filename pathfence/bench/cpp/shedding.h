// SPDX-License-Identifier: Apache-2.0
// What a service without a fence can do about a queue: refuse at once what finds so many waiting or under way, and, when
// a worker takes it, what has waited past its target. Thrift's own pool has neither as an answer: its bound blocks the
// I/O thread, and its expiry closes the connection.
#pragma once

#include <thrift/concurrency/ThreadManager.h>

#include <chrono>

namespace bench {

class SheddingThreadManager : public apache::thrift::concurrency::ThreadManager {
public:
    using Runnable = apache::thrift::concurrency::Runnable;
    using ThreadFactory = apache::thrift::concurrency::ThreadFactory;

    SheddingThreadManager(std::size_t workers, std::size_t most, std::chrono::nanoseconds target);

    void add(std::shared_ptr<Runnable> task, std::int64_t timeout = 0, std::int64_t expiration = 0) override;
    void start() override;
    void stop() override;

    STATE state() const override { return workers_->state(); }
    std::shared_ptr<ThreadFactory> threadFactory() const override { return workers_->threadFactory(); }
    void threadFactory(std::shared_ptr<ThreadFactory> value) override;
    void addWorker(std::size_t value) override { workers_->addWorker(value); }
    void removeWorker(std::size_t value) override { workers_->removeWorker(value); }
    std::size_t idleWorkerCount() const override { return workers_->idleWorkerCount(); }
    std::size_t workerCount() const override { return workers_->workerCount(); }
    std::size_t pendingTaskCount() const override { return workers_->pendingTaskCount(); }
    std::size_t totalTaskCount() const override { return workers_->totalTaskCount(); }
    std::size_t pendingTaskCountMax() const override { return most_; }
    std::size_t expiredTaskCount() const override { return workers_->expiredTaskCount(); }
    void remove(std::shared_ptr<Runnable> task) override { workers_->remove(task); }
    std::shared_ptr<Runnable> removeNextPending() override { return workers_->removeNextPending(); }
    void removeExpiredTasks() override { workers_->removeExpiredTasks(); }
    void setExpireCallback(ExpireCallback callback) override { workers_->setExpireCallback(callback); }

private:
    const std::shared_ptr<ThreadManager> workers_, refusals_;
    const std::size_t most_;
    const std::chrono::nanoseconds target_;
};

}  // namespace bench
