// SPDX-License-Identifier: Apache-2.0
// The threads behind a FencedThreadManager.
#include "thrift/workers.h"

#include <thrift/concurrency/Exception.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <set>
#include <stdexcept>
#include <thread>

#include "thrift_service.h"

namespace {

using temper::pathfence::thrift::Workers;

struct Function : at::concurrency::Runnable {
    explicit Function(std::function<void()> d) : does(std::move(d)) {}
    void run() override { does(); }
    const std::function<void()> does;
};

Workers::Task task(std::function<void()> does) { return std::make_shared<Function>(std::move(does)); }

void await_idle(const Workers& workers, std::size_t count) {
    while (workers.counts().idle != count) std::this_thread::yield();
}

TEST_CASE("who was idle last is next") {
    Workers workers(4);
    workers.start();
    std::set<std::thread::id> threads;
    for (int i = 0; i < 100; ++i) {
        await_idle(workers, 4);
        std::promise<std::thread::id> ran;
        workers.add(task([&] { ran.set_value(std::this_thread::get_id()); }));
        threads.insert(ran.get_future().get());
    }
    CHECK(threads.size() == 1);
}

// In the order in which they were added, before the threads end.
TEST_CASE("a stop has what waits run") {
    Workers workers(1);
    workers.start();
    await_idle(workers, 1);
    Gate gate;
    workers.add(task([&] { gate.pass(); }));
    std::vector<int> ran;
    for (int i = 0; i < 100; ++i) workers.add(task([&ran, i] { ran.push_back(i); }));
    auto stopped = std::async(std::launch::async, [&] { workers.stop(); });
    while (workers.phase() != Workers::Phase::stopping) std::this_thread::yield();
    CHECK(workers.counts().pending == 100);
    CHECK_THROWS_AS(workers.resize(1), at::concurrency::IllegalStateException);
    gate.open();
    stopped.get();
    CHECK(ran.size() == 100);
    CHECK(std::is_sorted(ran.begin(), ran.end()));
    CHECK(workers.counts().threads == 0);
}

TEST_CASE("only who is started takes tasks") {
    using at::concurrency::IllegalStateException;
    Workers workers(1);
    const auto nothing = task([] {});
    CHECK_THROWS_AS(workers.add(nothing), IllegalStateException);
    workers.start();
    workers.add(nothing);
    workers.stop();
    CHECK_THROWS_AS(workers.add(nothing), IllegalStateException);
    workers.start();
    CHECK(workers.phase() == Workers::Phase::stopped);
}

TEST_CASE("threads come and go") {
    Workers workers(2);
    workers.start();
    Gate gate;
    workers.add(task([&] { gate.pass(); }));
    workers.resize(-1);
    CHECK(workers.counts().threads == 1);
    CHECK(workers.counts().idle == 0);
    auto none_left = std::async(std::launch::async, [&] { workers.resize(-1); });
    gate.open();
    none_left.get();
    CHECK(workers.counts().threads == 0);
    CHECK_THROWS_AS(workers.resize(-1), at::concurrency::InvalidArgumentException);
    std::promise<void> ran;
    workers.add(task([&] { ran.set_value(); }));
    workers.resize(3);
    ran.get_future().get();
    CHECK(workers.counts().threads == 3);
}

// Who waits for threads to leave goes on when as many are wanted again.
TEST_CASE("a change of mind ends a wait") {
    Workers workers(2);
    workers.start();
    await_idle(workers, 2);
    Gate gate;
    for (int i = 0; i < 2; ++i) workers.add(task([&] { gate.pass(); }));
    auto fewer = std::async(std::launch::async, [&] { workers.resize(-1); });
    while (workers.counts().wanted != 1) std::this_thread::yield();
    workers.resize(1);
    fewer.get();
    CHECK(workers.counts().threads == 2);
    gate.open();
}

// What nobody is left to run is dropped when they stop, with what it holds.
TEST_CASE("a stop keeps no task") {
    const auto workers = std::make_shared<Workers>(0);
    workers->start();
    workers->add(task([workers] {}));
    workers->stop();
    CHECK(workers.use_count() == 1);
}

TEST_CASE("a thread that cannot start is told of") {
    struct Few : Workers::ThreadFactory {
        std::shared_ptr<at::concurrency::Thread> newThread(std::shared_ptr<at::concurrency::Runnable> runnable) const override {
            if (left-- == 0) throw std::runtime_error("there are too many threads");
            return ThreadFactory::newThread(std::move(runnable));
        }
        mutable int left = 1;
    };
    const auto few = std::make_shared<Few>();
    Workers workers(2);
    workers.factory(few);
    CHECK_THROWS_AS(workers.start(), std::runtime_error);
    CHECK(workers.phase() == Workers::Phase::fresh);
    CHECK(workers.counts().threads == 1);
    few->left = 1;
    workers.start();
    CHECK(workers.phase() == Workers::Phase::started);
    CHECK(workers.counts().threads == 2);
    few->left = 1;
    CHECK_THROWS_AS(workers.resize(2), std::runtime_error);
    CHECK(workers.counts().threads == 3);
    workers.resize(-3);
    CHECK(workers.counts().threads == 0);
}

TEST_CASE("a task that throws ends no thread") {
    at::GlobalOutput.setOutputFunction([](const char*) {});
    Workers workers(1);
    workers.start();
    workers.add(task([] { throw std::runtime_error("as a task may"); }));
    workers.add(task([] { throw 1; }));
    std::promise<void> ran;
    workers.add(task([&] { ran.set_value(); }));
    ran.get_future().get();
}

// Threads that are not detached, and take a while to end.
struct Slow : Workers::ThreadFactory {
    Slow() : ThreadFactory(false) {}
    std::shared_ptr<at::concurrency::Thread> newThread(std::shared_ptr<at::concurrency::Runnable> runnable) const override {
        return ThreadFactory::newThread(task([this, runnable] {
            runnable->run();
            for (int i = 0; i < 1000; ++i) std::this_thread::yield();
            ++ended;
        }));
    }
    mutable std::atomic<int> ended{0};
};

TEST_CASE("threads that can be joined are") {
    const auto factory = std::make_shared<Slow>();
    Workers workers(4);
    workers.factory(factory);
    workers.start();
    workers.resize(-2);
    CHECK(factory->ended == 2);
    workers.stop();
    CHECK(factory->ended == 4);
}

TEST_CASE("each task runs once") {
    constexpr int kAdders = 4, kTasks = 20'000;
    Workers workers(3);
    workers.start();
    std::vector<std::atomic<int>> runs(kAdders * kTasks);
    std::vector<std::thread> adders;
    for (int a = 0; a < kAdders; ++a)
        adders.emplace_back([&, a] {
            for (int i = a * kTasks; i < (a + 1) * kTasks; ++i) workers.add(task([&runs, i] { ++runs[static_cast<std::size_t>(i)]; }));
        });
    for (int i = 0; i < 200; ++i) workers.resize(i % 2 ? -2 : 2);
    for (auto& a : adders) a.join();
    workers.stop();
    CHECK(std::all_of(runs.begin(), runs.end(), [](const auto& r) { return r == 1; }));
}

}  // namespace
