// SPDX-License-Identifier: Apache-2.0
// Random operations on several threads; at the end no permit is out and nobody waits. argv: the number of operations,
// and a seed, if it is to be a given one.
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "temper/pathfence/fence.h"

namespace {

using namespace temper::pathfence;

constexpr int kThreads = 4;

std::atomic<Time> clock_now{0};
std::atomic<std::int64_t> operations{0}, submitted{0}, granted{0}, refused{0}, cancelled{0}, wrong{0};

// Permits that are out, handed from thread to thread.
class Held {
public:
    void add(Permit p) {
        const std::lock_guard<std::mutex> lock(mutex_);
        permits_.push_back(std::move(p));
    }
    Permit any(std::uint64_t r) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (permits_.empty()) return {};
        std::swap(permits_[r % permits_.size()], permits_.back());
        Permit p = std::move(permits_.back());
        permits_.pop_back();
        return p;
    }

private:
    std::mutex mutex_;
    std::vector<Permit> permits_;
};

Config config(std::uint64_t r) {
    Config c;
    c.workers = static_cast<std::int64_t>(2 + r % 15);
    c.queue_max = 64;
    for (const char* name : {"a", "b", "c"}) c.classes.push_back({name, {name}, 0, 0, 0, 0});
    return c;
}

void serve(Fence& fence, Held& held, std::uint64_t seed, std::int64_t until) {
    std::mt19937_64 random(seed);
    static const char* const keys[] = {"a", "b", "c", "x", "y", "z", "not valid"};
    Fence::Ticket last = 0;
    while (operations.fetch_add(1) < until) {
        const std::uint64_t r = random();
        clock_now.fetch_add(static_cast<Time>(r % 200'000));
        const std::uint64_t x = r >> 32;
        const Call call{keys[x % 7], x % 5 ? 0 : static_cast<Time>(x % 50) * kMillisecond, x % 11 ? 0 : static_cast<std::int64_t>(x % 10)};
        switch (r % 16) {
        case 0: case 1: case 2: case 3: case 4: case 5:
            ++submitted;
            last = fence.submit(
                call,
                [&held, x](Permit p) {
                    ++granted;
                    if (x % 4 == 0) throw std::runtime_error("a handler that fails at once");
                    if (x % 4 == 1) return;  // done at once
                    held.add(std::move(p));
                },
                [](const char*) { ++refused; });
            break;
        case 6:
            if (fence.cancel(last)) ++cancelled;
            break;
        case 7:
            if (const Permit p = held.any(x)) {
                p.edge(x % 2 ? "store" : "cache");
                held.add(p.share());
            }
            break;
        case 8:
            if (Permit p = held.any(x)) p.release(x % 2 ? Outcome::cancel : Outcome::fail);
            break;
        case 9:
            if (x % 1024 == 0) fence.reload(config(x >> 10));
            if (x % 1024 == 1) fence.off(x >> 10 & 1);
            break;
        case 10:
            fence.tick();
            break;
        case 11:
            try {
                const Permit p = held.any(x);
                if (x % 2) throw std::runtime_error("a handler that fails");
            } catch (const std::runtime_error&) {
            }
            break;
        default:
            held.any(x);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::int64_t count = argc > 1 ? std::atoll(argv[1]) : 10'000'000;
    const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : std::random_device{}();
    std::cout << count << " operations on " << kThreads << " threads, seed " << seed << std::endl;
    Fence::Options options;
    options.clock = [] { return clock_now.load(); };
    options.ticker = false;
    Fence fence(config(14), options);
    Held held;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&, i] { serve(fence, held, seed + static_cast<std::uint64_t>(i), count); });
    for (auto& t : threads) t.join();
    fence.off(true);
    while (held.any(0)) {
    }
    if (granted + refused + cancelled != submitted) ++wrong;
    std::cout << submitted << " submitted, " << granted << " granted, " << refused << " refused, " << cancelled << " cancelled; in flight " << fence.in_flight() << ", waiting "
              << fence.waiting() << std::endl;
    return fence.in_flight() == 0 && fence.waiting() == 0 && wrong == 0 && granted > 0 && refused > 0 && cancelled > 0 ? 0 : 1;
}
