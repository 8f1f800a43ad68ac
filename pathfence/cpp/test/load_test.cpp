// SPDX-License-Identifier: Apache-2.0
// Many threads at once while an operator changes the configuration; and a flood of keys that nobody knows.
#include <doctest/doctest.h>
#include <malloc.h>

#include <atomic>
#include <thread>

#include "temper/pathfence/fence.h"

namespace {

using namespace temper::pathfence;

constexpr std::int64_t kMostWorkers = 16;

// Of more or fewer workers, with classes that come, go and change.
Config version(int n) {
    Config c;
    c.workers = 1 + n * 5 % kMostWorkers;
    c.queue_max = n % 3 ? 1024 : 2;
    for (int i = 0; i < n % 5; ++i) {
        const std::string name(1, static_cast<char>('a' + (n + i) % 5));
        c.classes.push_back({name, {name}, 1 + n * 37 % 1000, 0, 0, 0});
    }
    return c;
}

// Asks for permits, holds each for some time or gives it to a part of its request, and gives it back.
struct Client {
    std::int64_t served = 0, refused = 0;

    void run(Fence& fence, int seed, const std::atomic<bool>& over, std::atomic<std::int64_t>& held) {
        for (int i = seed; !over; i += 7) try {
                Permit permit = fence.acquire({std::string(1, static_cast<char>('a' + i % 7)), i % 4 ? 0 : kMillisecond, 0});
                CHECK(++held <= kMostWorkers);
                permit.edge("edge" + std::to_string(i % 11));
                if (i % 3 == 0) {
                    Permit part = permit.share();
                    permit.release(Outcome::ok);
                    permit = std::move(part);
                }
                for (int n = i % 5; n > 0; --n) std::this_thread::yield();
                --held;
                ++served;
            } catch (const Shed&) {
                ++refused;
            }
    }
};

TEST_CASE("reload under load") {
    Fence fence(version(0));
    std::atomic<bool> over{false};
    std::atomic<std::int64_t> held{0};
    std::vector<Client> clients(24);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < clients.size(); ++i) threads.emplace_back([&, i] { clients[i].run(fence, static_cast<int>(i), over, held); });
    for (int n = 1; n <= 500; ++n) {
        while (fence.in_flight() == 0) std::this_thread::yield();
        if (n % 50 == 0) fence.off(n % 100 == 0);
        fence.reload(version(n));
    }
    over = true;
    for (auto& t : threads) t.join();
    CHECK(fence.in_flight() == 0);
    CHECK(fence.waiting() == 0);
    std::int64_t served = 0, refused = 0, granted = 0, shed = 0;
    for (const Client& c : clients) served += c.served, refused += c.refused;
    for (const ClassState& c : fence.states()) {
        CHECK(c.in_flight == 0);
        CHECK(c.queued == 0);
        granted += c.granted;
        shed += c.shed;
    }
    CHECK(served == granted);
    CHECK(refused == shed);
    CHECK(served > 0);
}

// Each key comes once, is served or expires, and uses an edge: what is kept of it does not grow with their number, and a
// class that is known finds a worker beside them.
TEST_CASE("a million forged keys") {
    Config config;
    config.workers = 16;
    config.classes.push_back({"a", {"a"}, 0, 0, 0, 0});
    Core core(config, 0);
    std::size_t before = 0;
    for (std::int64_t i = 1; i <= 1'000'000; ++i) {
        const Time now = i * 10'000;
        core.arrive(now, {i, "forged" + std::to_string(i), 0, 0, 0});
        core.edge(now, i, "edge" + std::to_string(i));
        core.done(now, i % 4 ? i : i - 200, Outcome::ok);  // some take long
        CHECK(core.in_flight() < config.workers);
        if (i == 100'000) before = mallinfo2().uordblks;
    }
    CHECK(mallinfo2().uordblks < before + 1'000'000);
    CHECK(core.states().size() == 9);  // a, and the buckets
    const auto& decisions = core.arrive(1'000'000 * 10'000LL, {-1, "a", 0, 0, 0});
    CHECK(decisions.back().kind == Decision::Kind::grant);
    CHECK(decisions.back().id == -1);
}

}  // namespace
