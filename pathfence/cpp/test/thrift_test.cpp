// SPDX-License-Identifier: Apache-2.0
// The fence in TNonblockingServer, TThreadPoolServer and TThreadedServer, over loopback; and what is read of a message.
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/protocol/THeaderProtocol.h>
#include <thrift/server/TThreadPoolServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TServerSocket.h>

#include "thrift_service.h"

namespace {

// While one method's requests have all the workers that they may have, the other's are served, and what cannot be in
// time is refused.
void isolates(int port, const Fence& fence, Gate& gate) {
    std::vector<std::future<std::string>> slow;
    for (int i = 0; i < 6; ++i) slow.push_back(std::async(std::launch::async, [port] { return call(port, "slow"); }));
    while (fence.waiting() + fence.in_flight() < 6) std::this_thread::yield();
    CHECK(fence.in_flight() < 4);
    for (int i = 0; i < 5; ++i) CHECK(call(port, "quick").empty());
    CHECK(call(port, "slow", {"", 20 * kMillisecond, ""}) == "pf-shed: expired");
    gate.open();
    for (auto& s : slow) CHECK(s.get().empty());
    while (fence.in_flight() > 0) std::this_thread::yield();
}

// What a method throws, or answers with, counts as its downstream's failure; a client that is gone does not.
void throws(const std::string& method) {
    if (method == "answers") throw at::TApplicationException(at::TApplicationException::INTERNAL_ERROR, "the store is down");
    if (method == "throws") throw at::TException("not what generated code lets through");
    if (method == "gone") throw at::transport::TTransportException("the client is gone");
}

void counts_failures(int port, const Fence& fence) {
    // Of these no server says anything to its client.
    const auto throwing = connected(port), leaving = connected(port);
    write_call(*throwing, "throws", {});
    write_call(*leaving, "gone", {});
    CHECK(call(port, "answers") == "the store is down");
    CHECK(call(port, "fine").empty());
    std::int64_t granted = 0;
    while (granted < 4 || fence.in_flight() > 0) {
        granted = 0;
        for (const auto& c : fence.states()) granted += c.granted;
    }
    std::int64_t failed = 0;
    for (const auto& c : fence.states()) failed += c.failed;
    CHECK(failed == 2);
}

TEST_CASE("TNonblockingServer isolates and counts failures") {
    Gate gate;
    FencedServer server(slow_and_quick(4), shared, slow_at(gate));
    isolates(server.port(), *server.fence, gate);
    FencedServer failing(slow_and_quick(4), shared, throws);
    counts_failures(failing.port(), *failing.fence);
}

// A server with a thread for each connection, while something checks it.
template <class Server, class... Threads>
void threaded(Service::Handle handle, const std::function<void(int port, const Fence& fence)>& check, const Threads&... threads) {
    const auto fence = std::make_shared<Fence>(slow_and_quick(4));
    const auto socket = std::make_shared<at::transport::TServerSocket>("127.0.0.1", 0);
    Server server(std::make_shared<FencedProcessor>(std::make_shared<Service>(std::move(handle)), shared, fence), socket,
                  std::make_shared<at::transport::TFramedTransportFactory>(), std::make_shared<at::protocol::TBinaryProtocolFactory>(), threads...);
    const Running running(server);
    check(socket->getPort(), *fence);
}

TEST_CASE("TThreadPoolServer isolates") {
    const auto workers = at::concurrency::ThreadManager::newSimpleThreadManager(16);
    workers->threadFactory(std::make_shared<at::concurrency::ThreadFactory>());
    workers->start();
    Gate gate;
    threaded<at::server::TThreadPoolServer>(slow_at(gate), [&](int port, const Fence& fence) { isolates(port, fence, gate); }, workers);
}

TEST_CASE("TThreadedServer isolates and counts failures") {
    Gate gate;
    threaded<at::server::TThreadedServer>(slow_at(gate), [&](int port, const Fence& fence) { isolates(port, fence, gate); });
    threaded<at::server::TThreadedServer>(throws, counts_failures);
}

const Context full{"home.read", 240 * kMillisecond, "shared*2"};

TEST_CASE_TEMPLATE("a message says what is asked for and what travels with it", Protocol, at::protocol::TBinaryProtocol, at::protocol::TCompactProtocol) {
    Headers carrier{{"other", "x"}};
    write_headers(full, carrier);
    Listener l = shared;
    auto bytes = message<Protocol>("read", carrier);
    CHECK(peek(bytes.data(), bytes.size(), l).method == "read");
    CHECK(peek(bytes.data(), bytes.size(), l).context.path.empty());
    l.carrier = true;
    const Incoming in = peek(bytes.data(), bytes.size(), l);
    CHECK(in.method == "read");
    CHECK(in.context.path == full.path);
    CHECK(in.context.timeout == full.timeout);
    CHECK(depth_of(in.context, "shared") == 2);
    l.trusted = false;
    CHECK(peek(bytes.data(), bytes.size(), l).context.path.empty());
    CHECK(peek(bytes.data(), bytes.size(), l).context.timeout == full.timeout);
    bytes = message<Protocol>(join_name(full, "read"), {});
    const Incoming prefixed = peek(bytes.data(), bytes.size(), shared);
    CHECK(prefixed.method == "read");
    CHECK(prefixed.context.path == full.path);
    CHECK(call_of(prefixed, shared).depth == 2);
    l.trusted = true;
    for (std::size_t size = 0; size < bytes.size(); ++size) peek(bytes.data(), size, l);
}

TEST_CASE("THeader carries on") {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    at::protocol::THeaderProtocol out(memory);
    Headers headers;
    write_headers(full, headers);
    for (const auto& [k, v] : headers) out.setHeader(k, v);
    write_call(out, "read", {});
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    const Incoming in = peek(bytes + 4, size - 4, shared);
    CHECK(in.method == "read");
    CHECK(in.context.path == full.path);
    CHECK(in.context.visits == full.visits);
    for (std::uint32_t n = 4; n < size; ++n) peek(bytes + 4, n - 4, shared);
}

}  // namespace
