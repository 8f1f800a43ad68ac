// SPDX-License-Identifier: Apache-2.0
// The engine: permits, parking, blocking, reload, switching off, the configuration's file and environment.
#include "temper/pathfence/fence.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <fstream>
#include <future>
#include <limits>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace {

using namespace temper::pathfence;

Config one_worker() {
    Config c;
    c.workers = 1;
    c.classes.push_back({"a", {"a"}, 0, 0, 0, 0});
    return c;
}

// A fence whose time the test sets.
struct Bench {
    // Permits that outlive the fence ask for the time, too.
    const std::shared_ptr<std::atomic<Time>> clock = std::make_shared<std::atomic<Time>>(0);
    std::atomic<Time>& now = *clock;
    Fence fence;

    explicit Bench(const Config& c) : fence(c, {[clock = clock] { return clock->load(); }, false, {}, {}}) {}
};

TEST_CASE("a permit comes back whatever happens") {
    Bench b(one_worker());
    { const Permit p = b.fence.acquire({"a", 0, 0}); CHECK(b.fence.in_flight() == 1); }
    CHECK(b.fence.in_flight() == 0);
    try {
        const Permit p = b.fence.acquire({"a", 0, 0});
        throw std::runtime_error("a handler that fails");
    } catch (const std::runtime_error&) {
    }
    CHECK(b.fence.in_flight() == 0);
    CHECK(b.fence.states()[0].failed == 1);
    Permit p = b.fence.acquire({"a", 0, 0});
    Permit q = std::move(p);
    CHECK(!p);
    CHECK(q);
    CHECK(b.fence.in_flight() == 1);
    q.release(Outcome::cancel);
    q.release(Outcome::ok);
    CHECK(b.fence.in_flight() == 0);
}

TEST_CASE("parts share a worker") {
    Bench b(one_worker());
    Permit root = b.fence.acquire({"a", 0, 0});
    Permit part = root.share();
    root.release(Outcome::ok);
    CHECK(b.fence.in_flight() == 1);
    part.release(Outcome::ok);
    CHECK(b.fence.in_flight() == 0);
    CHECK_THROWS_AS(root.share(), std::logic_error);
}

TEST_CASE("who waits is parked, served, cancelled or refused") {
    Bench b(one_worker());
    Permit first = b.fence.acquire({"a", 0, 0});
    Permit second;
    std::string reason;
    const auto refused = [&](const char* r) { reason = r; };
    b.fence.submit({"a", 0, 0}, [&](Permit p) { second = std::move(p); }, refused);
    const auto gone = b.fence.submit({"a", 0, 0}, [](Permit) { FAIL_CHECK("granted though cancelled"); }, refused);
    b.fence.submit({"a", 40 * kMillisecond, 0}, [](Permit) { FAIL_CHECK("granted though expired"); }, refused);
    CHECK(b.fence.waiting() == 3);
    CHECK(b.fence.cancel(gone));
    CHECK(!b.fence.cancel(gone));
    b.now = 41 * kMillisecond;
    b.fence.tick();
    CHECK(reason == "expired");
    CHECK(b.fence.waiting() == 1);
    CHECK(!second);
    first.release(Outcome::ok);
    REQUIRE(second);
    CHECK(second.class_name() == "a");
}

TEST_CASE("who is not trusted cannot wait longer than the target") {
    Config c = one_worker();
    c.target = 100 * kMillisecond;
    Bench b(c);
    const Permit first = b.fence.acquire({"a", 0, 0});
    std::string own, patient;
    b.fence.submit({"a", 10'000 * kMillisecond, 0}, [](Permit) {}, [&](const char* r) { own = r; });
    b.fence.submit({"a", 10'000 * kMillisecond, 0, true}, [](Permit) {}, [&](const char* r) { patient = r; });
    b.now = 101 * kMillisecond;
    b.fence.tick();
    CHECK(patient == "expired");
    CHECK(own.empty());
}

TEST_CASE("acquire blocks until a worker is free") {
    Bench b(one_worker());
    Permit first = b.fence.acquire({"a", 0, 0});
    auto second = std::async(std::launch::async, [&] { return b.fence.acquire({"a", 0, 0}); });
    while (b.fence.waiting() == 0) std::this_thread::yield();
    first.release(Outcome::ok);
    CHECK(second.get().class_name() == "a");
    b.now = 1000 * kMillisecond;
    const Permit third = b.fence.acquire({"a", 0, 0});
    auto fourth = std::async(std::launch::async, [&]() -> std::string {
        try {
            b.fence.acquire({"a", 10 * kMillisecond, 0});
        } catch (const Shed& s) {
            return s.what();
        }
        return "";
    });
    while (b.fence.waiting() == 0) std::this_thread::yield();
    b.now = 1020 * kMillisecond;
    b.fence.tick();
    CHECK(fourth.get() == "pf-shed: expired");
}

TEST_CASE("a closed fence refuses who waits") {
    std::string reason;
    Permit held;
    {
        Bench b(one_worker());
        held = b.fence.acquire({"a", 0, 0});
        b.fence.submit({"a", 0, 0}, [](Permit) { FAIL_CHECK("granted by a closed fence"); }, [&](const char* r) { reason = r; });
        b.now = kMillisecond;
    }
    CHECK(reason == "closed");
}

std::string message_of(std::exception_ptr thrown) {
    try {
        std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "what is no std::exception";
    }
}

// What a fence says on standard error while one callback throws "a", and another what is no std::exception.
std::string printed_with(std::function<void(std::exception_ptr)> errors) {
    std::ostringstream printed;
    std::streambuf* const before = std::cerr.rdbuf(printed.rdbuf());
    {
        Fence::Options options;
        options.ticker = false;
        options.errors = std::move(errors);
        Fence fence(one_worker(), options);
        fence.submit({"a", 0, 0}, [](Permit) { throw std::runtime_error("a"); }, [](const char*) {});
        fence.submit({"a", 0, 0}, [](Permit) { throw 1; }, [](const char*) {});
        CHECK(fence.in_flight() == 0);
        CHECK(fence.states()[0].failed == 2);
    }
    std::cerr.rdbuf(before);
    return printed.str();
}

TEST_CASE("what callbacks throw goes where it is wanted") {
    CHECK(printed_with({}) == "pathfence: a callback threw: a\npathfence: a callback threw: what is no std::exception\n");
    std::string told;
    CHECK(printed_with([&](std::exception_ptr thrown) { told += message_of(thrown) + ";"; }).empty());
    CHECK(told == "a;what is no std::exception;");
    CHECK(printed_with([](std::exception_ptr) { throw std::runtime_error("b"); }) ==
          "pathfence: a callback threw: a\npathfence: Options::errors threw: b\n"
          "pathfence: a callback threw: what is no std::exception\npathfence: Options::errors threw: b\n");
}

// A long queue of requests that end at once makes no deep stack.
TEST_CASE("ten thousand in a row") {
    Config c = one_worker();
    c.queue_max = 20'000;
    Bench b(c);
    Permit first = b.fence.acquire({"a", 0, 0});
    int served = 0;
    for (int i = 0; i < 10'000; ++i) b.fence.submit({"a", 0, 0}, [&](Permit) { ++served; }, [](const char*) {});
    first.release(Outcome::ok);
    CHECK(served == 10'000);
    CHECK(b.fence.in_flight() == 0);
}

TEST_CASE("reload and off") {
    Bench b(one_worker());
    const Permit first = b.fence.acquire({"a", 0, 0});
    Permit second;
    b.fence.submit({"b", 0, 0}, [&](Permit p) { second = std::move(p); }, [](const char*) {});
    Config c = one_worker();
    c.workers = 0;
    CHECK_THROWS_AS(b.fence.reload(c), ConfigError);
    CHECK(!second);
    c.workers = 2;
    b.fence.reload(c);
    CHECK(second);
    b.fence.off(true);
    bool shed = false;
    b.fence.submit({"a", kMillisecond, 0}, [](Permit) {}, [&](const char*) { shed = true; });
    b.now = 500 * kMillisecond;
    b.fence.tick();
    CHECK(!shed);
    CHECK(b.fence.waiting() == 1);
    b.fence.off(false);
    CHECK(shed);
}

TEST_CASE("the environment and a file configure") {
    char file[] = "/tmp/pathfence-XXXXXX";
    CHECK(close(mkstemp(file)) == 0);
    // At once, as editors and ConfigMaps do: whoever watches the file sees no half of it.
    const auto write = [&](const std::string& text) {
        const std::string whole = std::string(file) + ".new";
        std::ofstream(whole, std::ios::trunc) << text;
        CHECK(rename(whole.c_str(), file) == 0);
    };
    write(R"({"workers": 3, "classes": [{"name": "a", "keys": ["a\u002fb"], "weight": 200}]})");
    setenv("PATHFENCE_CONFIG", file, 1);
    CHECK(load_config().workers == 3);
    CHECK(load_config().classes[0].keys[0] == "a/b");
    setenv("PATHFENCE_WORKERS", "5", 1);
    setenv("PATHFENCE_OFF", "1", 1);
    CHECK(load_config().workers == 5);
    CHECK(load_config().off);
    const auto load = [](const char* workers, const char* off) {
        setenv("PATHFENCE_WORKERS", workers, 1);
        setenv("PATHFENCE_OFF", off, 1);
        return load_config().workers;
    };
    CHECK_THROWS_AS(load("five", "1"), ConfigError);
    CHECK_THROWS_AS(load("5", "yes"), ConfigError);
    CHECK_THROWS_AS(load("4097", "0"), ConfigError);
    CHECK(load("5", "0") == 5);
    unsetenv("PATHFENCE_WORKERS");
    unsetenv("PATHFENCE_OFF");
    for (const char* bad : {"", "{", "{\"workers\": 1.5}", "{\"workers\": 1, \"wrokers\": 2}", "{\"workers\": \"1\"}", "{\"workers\": 1} x", "{\"workers\": 1, \"workers\": 2}"}) {
        CAPTURE(bad);
        write(bad);
        CHECK_THROWS_AS(load_config(), ConfigError);
    }

    // A file that is watched is put in force when it changes, and what is wrong with it is shown.
    write(R"({"workers": 2})");
    Config c = load_config(file);
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::string> reloads;
    const auto reloaded = [&](const std::string& error) {
        const std::lock_guard<std::mutex> lock(mutex);
        reloads.push_back(error);
        changed.notify_one();
        throw std::runtime_error("as a callback may");
    };
    const auto next_reload = [&] {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return !reloads.empty(); });
        const std::string error = reloads.front();
        reloads.pop_front();
        return error;
    };
    Fence fence(c, {{}, true, file, reloaded});
    CHECK(next_reload().empty());
    const Permit one = fence.acquire({"a", 0, 0});
    write(R"({"workers": 0})");
    const std::string error = next_reload();
    CHECK(!error.empty());
    CHECK(error == fence.watch_error());
    write(R"({"workers": 16, "classes": [{"name": "later"}]})");
    CHECK(next_reload().empty());
    CHECK(fence.watch_error().empty());
    CHECK(fence.states().size() == 2);
    // What was wrong beside the file, here that no more can be open, may be right without a change of it.
    const std::string next = std::string(file) + ".new";
    std::ofstream(next, std::ios::trunc) << R"({"workers": 17})";
    rlimit some{};
    CHECK(getrlimit(RLIMIT_NOFILE, &some) == 0);
    const rlimit none{0, some.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    CHECK(rename(next.c_str(), file) == 0);
    CHECK(!next_reload().empty());
    CHECK(setrlimit(RLIMIT_NOFILE, &some) == 0);
    CHECK(next_reload().empty());
    // Nor does a file have to look changed to be so.
    struct stat whole {};
    CHECK(stat(file, &whole) == 0);
    (std::fstream(file, std::ios::in | std::ios::out) << R"({"workers": 18})").flush();
    const timespec times[] = {whole.st_atim, whole.st_mtim};
    CHECK(utimensat(AT_FDCWD, file, times, 0) == 0);
    CHECK(next_reload().empty());
    // It may become a folder, which opens, but cannot be read.
    CHECK(unlink(file) == 0);
    CHECK(mkdir(file, 0700) == 0);
    CHECK(!next_reload().empty());
    CHECK(rmdir(file) == 0);
    unsetenv("PATHFENCE_CONFIG");
}

TEST_CASE("times and depths have bounds") {
    Config c;
    c.workers = 1;
    Bench b(c);
    const Permit held = b.fence.acquire({"a", 0, 0});
    const char* why = "nothing";
    b.fence.submit({"a", std::numeric_limits<Time>::max(), 0}, [](Permit) {}, [&](const char* reason) { why = reason; });
    b.now += kLongest - 1;
    b.fence.tick();
    CHECK(why == std::string("nothing"));
    b.now += 1;
    b.fence.tick();
    CHECK(why == std::string("expired"));
    CHECK_THROWS_AS(b.fence.acquire({"a", -1, 0}), std::invalid_argument);
    CHECK_THROWS_AS(b.fence.acquire({"a", 0, -1}), std::invalid_argument);
    CHECK(b.fence.state().waiting == 0);
}

TEST_CASE("edges are learned below a request") {
    Config c;
    c.workers = 4;
    Bench b(c);
    CHECK(Serving::here() == nullptr);
    for (int i = 0; i < 8; ++i) {
        const Permit p = b.fence.acquire({"home", 0, 0});
        const Serving here(p);
        Serving::here()->edge("store");
    }
    CHECK(Serving::here() == nullptr);
    const Permit p = b.fence.acquire({"home", 0, 0});
    CHECK(p.class_name() == "~calls:store");
    const Permit other = b.fence.acquire({"other", 0, 0});
    other.edge("cache");
    for (const ClassState& c : b.fence.states()) {
        CAPTURE(c.name);
        const std::string key = c.name == "~calls:store" ? "home" : c.name == other.class_name() ? "other" : "";
        CHECK(c.keys == (key.empty() ? std::vector<std::string>{} : std::vector<std::string>{key}));
    }
}

// What a request tells of its edges reaches the core for a configured class, too, and again and again.
TEST_CASE("classes that are late together share a limit") {
    Config c;
    c.workers = 16;
    c.target = 50 * kMillisecond;
    for (const char* name : {"a", "b", "c"}) c.classes.push_back({name, {name}, 0, 0, 0, 0});
    Bench b(c);
    const int quick = 30;  // rounds in which all are in time
    for (int round = 0; round < quick + 20; ++round) {
        std::vector<Permit> permits;
        for (const char* key : {"a", "b", "c"}) {
            permits.push_back(b.fence.acquire({key, 0, 0}));
            permits.back().edge(*key == 'c' ? "other" : "store");
        }
        for (int i = 0; i < 3; ++i) {
            b.now += 25 * kMillisecond;
            if (i == 0) permits.pop_back();  // c is in time
            if (round < quick) permits.clear();
            b.fence.tick();
        }
    }
    const auto states = b.fence.states();
    CHECK(states[0].reason == "together");
    CHECK(states[1].reason == "together");
    CHECK(states[0].limit == states[1].limit);
    CHECK(states[2].limit == 16);
    CHECK(states[2].reason.empty());
}

}  // namespace
