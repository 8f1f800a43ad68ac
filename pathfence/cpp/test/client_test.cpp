// SPDX-License-Identifier: Apache-2.0
// Thrift clients: what a call below a request carries on, which edges are learned from it, and the pool of connections.
#include <atomic>
#include <set>
#include <string>

#include "thrift_service.h"

namespace {

constexpr Time kLong = 100'000 * kMillisecond;

Config config(std::int64_t workers, const std::string& key) {
    Config c;
    c.workers = workers;
    if (!key.empty()) c.classes.push_back({key, {key}, 0, kLong, 0, 0});
    return c;
}

TEST_CASE("a call carries on and its edge is learned") {
    Context arrived;
    FencedServer back(config(4, "home.read"), {"back", true, false, {}}, [&](const std::string&) { arrived = onward_here(); });
    FencedServer front(config(4, ""), {"front", true, false, {}}, [&](const std::string& method) {
        if (method == "alone") return;
        const auto out = std::make_shared<FencedProtocol>(connected(back.port()), "back");
        write_call(*out, "store", {});
        CHECK(read_reply(*out, "store").empty());
    });
    for (int i = 0; i < 8; ++i) {
        arrived = {};
        CHECK(call(front.port(), "read", {"home.read", kLong, "edge*1"}).empty());
        CHECK(arrived.path == "home.read");
        CHECK(arrived.visits == "edge*1;front*1;back*1");
        CHECK(arrived.timeout > 0);
        CHECK(arrived.timeout < kLong);
        CHECK(call(front.port(), "alone", {"home.alone", kLong, ""}).empty());
    }
    CHECK(back.fence->states()[0].name == "home.read");
    CHECK(back.fence->states()[0].granted == 8);
    while (front.fence->in_flight() > 0) std::this_thread::yield();  // an answer goes out before its permit comes back
    std::set<std::string> learned;  // in whichever order the first two permits came back
    for (const ClassState& c : front.fence->states()) learned.insert(c.name);
    CHECK(learned.count("~calls:back") == 1);
    CHECK(learned.count("~key:home.alone") == 1);
}

TEST_CASE("the key that an edge chose travels on") {
    Context arrived;
    FencedServer back(config(4, ""), {"back", true, false, {}}, [&](const std::string&) { arrived = onward_here(); });
    FencedServer edge(config(4, ""), {"edge", false, false, {{"read", "home.read"}}}, [&](const std::string&) {
        const auto out = std::make_shared<FencedProtocol>(connected(back.port()), "back");
        write_call(*out, "store", {});
        CHECK(read_reply(*out, "store").empty());
    });
    for (const auto& [method, key] : Headers{{"read", "home.read"}, {"write", "write"}}) {
        CHECK(call(edge.port(), method, {"forged", kLong, ""}).empty());
        CHECK(arrived.path == key);
        CHECK(arrived.timeout == 0);  // it would have been believed
    }
}

// Nobody asks again who was refused below, and its own client learns why.
TEST_CASE("a refusal from below is passed on") {
    FencedServer back(config(4, "a"), {"back", true, false, {}}, [](const std::string&) { FAIL_CHECK("served though refused"); });
    FencedServer front(config(4, "a"), {"front", true, false, {}}, [&](const std::string&) { pass_on(back.port(), "back"); });
    CHECK(call(front.port(), "read", {"a", kLong, "back*9"}) == "pf-shed: depth");
    CHECK(back.fence->states().front().shed == 1);
    while (front.fence->in_flight() > 0) std::this_thread::yield();
    CHECK(front.fence->states().front().granted == 1);
    CHECK(front.fence->states().front().failed == 1);
}

TEST_CASE("outside of a request nothing is carried") {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    FencedProtocol out(std::make_shared<at::protocol::TBinaryProtocol>(memory), "back");
    write_call(out, "store", {});
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    const Incoming in = peek(bytes, size, {"back", true, false, {}});
    CHECK(in.method == "store");
    CHECK(in.context.path.empty());
    CHECK(in.context.timeout == 0);
    CHECK(depth_of(in.context, "front") == 0);
}

struct Connection {
    int number;
};

// One connection at a time, numbered as they are made; with a negative number connecting fails.
struct Bench {
    std::atomic<int> made{0};
    const std::shared_ptr<Fence> fence = std::make_shared<Fence>(config(1, "a"));
    FencedPool<Connection> pool{fence, [this] {
        if (made < 0) throw at::transport::TTransportException("nobody listens");
        return std::make_shared<Connection>(Connection{++made});
    }};
    const Call a{"a", 0, 0};
};

TEST_CASE("a pool is as large as its fence and takes back") {
    Bench b;
    std::future<int> second;
    {
        const auto first = b.pool.take(b.a);
        CHECK(first->number == 1);
        CHECK(b.fence->in_flight() == 1);
        second = std::async(std::launch::async, [&] { return b.pool.take(b.a)->number; });
        while (b.fence->waiting() == 0) std::this_thread::yield();
        CHECK(b.made == 1);
    }
    CHECK(second.get() == 1);
    CHECK(b.made == 1);
    CHECK(b.fence->in_flight() == 0);
    CHECK(b.fence->states()[0].failed == 0);
}

TEST_CASE("a connection that an exception left is dropped") {
    Bench b;
    try {
        const auto lease = b.pool.take(b.a);
        throw std::runtime_error("in the middle of a message");
    } catch (const std::runtime_error&) {
    }
    CHECK(b.fence->in_flight() == 0);
    CHECK(b.fence->states()[0].failed == 1);
    CHECK(b.pool.take(b.a)->number == 2);
}

TEST_CASE("a failed connect gives the permit back as failed") {
    Bench b;
    b.made = -1;
    CHECK_THROWS_AS(b.pool.take(b.a), at::transport::TTransportException);
    CHECK(b.fence->in_flight() == 0);
    CHECK(b.fence->states()[0].failed == 1);
    b.made = 0;
    CHECK(b.pool.take(b.a)->number == 1);
}

}  // namespace
