// SPDX-License-Identifier: Apache-2.0
// Thrift clients: what a call below a request carries on, which edges are learned from it, and the pool of connections.
#include <atomic>

#include "thrift_service.h"

namespace {

constexpr Time kLong = 100'000 * kMillisecond;

Config config(std::int64_t workers, const std::string& key) {
    Config c;
    c.workers = workers;
    if (!key.empty()) c.classes.push_back({key, {key}, 0, kLong, 0, 0});
    return c;
}

void a_call_carries_on_and_its_edge_is_learned() {
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
        CHECK(arrived.path == "home.read" && arrived.visits == "edge*1;front*1;back*1");
        CHECK(arrived.timeout > 0 && arrived.timeout < kLong);
        CHECK(call(front.port(), "alone", {"home.alone", kLong, ""}).empty());
    }
    CHECK(back.fence->states()[0].name == "home.read" && back.fence->states()[0].granted == 8);
    while (front.fence->in_flight() > 0) std::this_thread::yield();  // an answer goes out before its permit comes back
    const auto states = front.fence->states();
    CHECK(states.size() >= 2 && states[states.size() - 2].name == "~0" && states.back().name == "~1");  // with this edge, and with none
}

void the_key_that_an_edge_chose_travels_on() {
    std::string arrived;
    FencedServer back(config(4, ""), {"back", true, false, {}}, [&](const std::string&) { arrived = onward_here().path; });
    FencedServer edge(config(4, ""), {"edge", false, false, {{"read", "home.read"}}}, [&](const std::string&) {
        const auto out = std::make_shared<FencedProtocol>(connected(back.port()), "back");
        write_call(*out, "store", {});
        CHECK(read_reply(*out, "store").empty());
    });
    for (const auto& [method, key] : Headers{{"read", "home.read"}, {"write", "write"}}) {
        CHECK(call(edge.port(), method, {"forged", 0, ""}).empty());
        CHECK(arrived == key);
    }
}

// Nobody asks again who was refused below, and its own client learns why.
void a_refusal_from_below_is_passed_on() {
    FencedServer back(config(4, "a"), {"back", true, false, {}}, [](const std::string&) { CHECK(!"served though refused"); });
    FencedServer front(config(4, "a"), {"front", true, false, {}}, [&](const std::string&) { pass_on(back.port(), "back"); });
    CHECK(call(front.port(), "read", {"a", kLong, "back*9"}) == "pf-shed: depth");
    CHECK(back.fence->states().front().shed == 1);
    while (front.fence->in_flight() > 0) std::this_thread::yield();
    CHECK(front.fence->states().front().granted == 1 && front.fence->states().front().failed == 1);
}

void outside_of_a_request_nothing_is_carried() {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    FencedProtocol out(std::make_shared<at::protocol::TBinaryProtocol>(memory), "back");
    write_call(out, "store", {});
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    const Incoming in = peek(bytes, size, {"back", true, false, {}});
    CHECK(in.method == "store" && in.context.path.empty() && in.context.timeout == 0 && depth_of(in.context, "front") == 0);
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

void a_pool_is_as_large_as_its_fence_and_takes_back() {
    Bench b;
    std::future<int> second;
    {
        const auto first = b.pool.take(b.a);
        CHECK(first->number == 1 && b.fence->in_flight() == 1);
        second = std::async(std::launch::async, [&] { return b.pool.take(b.a)->number; });
        while (b.fence->waiting() == 0) std::this_thread::yield();
        CHECK(b.made == 1);
    }
    CHECK(second.get() == 1 && b.made == 1 && b.fence->in_flight() == 0);
    CHECK(b.fence->states()[0].failed == 0);
}

void a_connection_that_an_exception_left_is_dropped() {
    Bench b;
    try {
        const auto lease = b.pool.take(b.a);
        throw std::runtime_error("in the middle of a message");
    } catch (const std::runtime_error&) {
    }
    CHECK(b.fence->in_flight() == 0 && b.fence->states()[0].failed == 1);
    CHECK(b.pool.take(b.a)->number == 2);
}

void a_failed_connect_gives_the_permit_back_as_failed() {
    Bench b;
    b.made = -1;
    bool thrown = false;
    try {
        b.pool.take(b.a);
    } catch (const at::transport::TTransportException&) {
        thrown = true;
    }
    CHECK(thrown && b.fence->in_flight() == 0 && b.fence->states()[0].failed == 1);
    b.made = 0;
    CHECK(b.pool.take(b.a)->number == 1);
}

}  // namespace

int main() {
    a_call_carries_on_and_its_edge_is_learned();
    the_key_that_an_edge_chose_travels_on();
    a_refusal_from_below_is_passed_on();
    outside_of_a_request_nothing_is_carried();
    a_pool_is_as_large_as_its_fence_and_takes_back();
    a_connection_that_an_exception_left_is_dropped();
    a_failed_connect_gives_the_permit_back_as_failed();
    return 0;
}
