// SPDX-License-Identifier: Apache-2.0
// The fence in TNonblockingServer, TThreadPoolServer and TThreadedServer, over loopback; and what is read of a message.
#include <thrift/protocol/TCompactProtocol.h>
#include <thrift/protocol/THeaderProtocol.h>
#include <thrift/server/TThreadPoolServer.h>
#include <thrift/server/TThreadedServer.h>
#include <thrift/transport/TServerSocket.h>

#include "thrift_service.h"

namespace {

Config config() {
    Config c;
    c.workers = 4;
    c.classes.push_back({"slow", {"slow"}, 0, 600'000 * kMillisecond, 0, 0});
    c.classes.push_back({"quick", {"quick"}, 0, 600'000 * kMillisecond, 0, 0});
    return c;
}

const Listener listener{"shared", true, false, {}};

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

Service::Handle slow_at(Gate& gate) {
    return [&gate](const std::string& method) {
        if (method == "slow") gate.pass();
    };
}

void nonblocking() {
    Gate gate;
    FencedServer server(config(), listener, slow_at(gate));
    isolates(server.port(), *server.fence, gate);
}

// A server with a thread for each connection.
template <class Server, class... Threads>
void threaded(const Threads&... threads) {
    Gate gate;
    const auto fence = std::make_shared<Fence>(config());
    const auto socket = std::make_shared<at::transport::TServerSocket>("127.0.0.1", 0);
    Server server(std::make_shared<FencedProcessor>(std::make_shared<Service>(slow_at(gate)), listener, fence), socket,
                  std::make_shared<at::transport::TFramedTransportFactory>(), std::make_shared<at::protocol::TBinaryProtocolFactory>(), threads...);
    const Running running(server);
    isolates(socket->getPort(), *fence, gate);
}

void thread_pool() {
    const auto workers = at::concurrency::ThreadManager::newSimpleThreadManager(16);
    workers->threadFactory(std::make_shared<at::concurrency::ThreadFactory>());
    workers->start();
    threaded<at::server::TThreadPoolServer>(workers);
}

const Context full{"home.read", 240 * kMillisecond, "shared*2"};

template <class Protocol>
std::vector<std::uint8_t> message(const std::string& method, const Headers& carrier) {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    Protocol out(memory);
    write_call(out, method, carrier);
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    return {bytes, bytes + size};
}

template <class Protocol>
void read_in() {
    Headers carrier{{"other", "x"}};
    write_headers(full, carrier);
    Listener l = listener;
    auto bytes = message<Protocol>("read", carrier);
    CHECK(peek(bytes.data(), bytes.size(), l).method == "read" && peek(bytes.data(), bytes.size(), l).context.path.empty());
    l.carrier = true;
    const Incoming in = peek(bytes.data(), bytes.size(), l);
    CHECK(in.method == "read" && in.context.path == full.path && in.context.timeout == full.timeout && depth_of(in.context, "shared") == 2);
    l.trusted = false;
    CHECK(peek(bytes.data(), bytes.size(), l).context.path.empty() && peek(bytes.data(), bytes.size(), l).context.timeout == full.timeout);
    bytes = message<Protocol>(join_name(full, "read"), {});
    const Incoming prefixed = peek(bytes.data(), bytes.size(), listener);
    CHECK(prefixed.method == "read" && prefixed.context.path == full.path && call_of(prefixed, listener).depth == 2);
    l.trusted = true;
    for (std::size_t size = 0; size < bytes.size(); ++size) peek(bytes.data(), size, l);
}

void theader() {
    const auto memory = std::make_shared<at::transport::TMemoryBuffer>();
    at::protocol::THeaderProtocol out(memory);
    Headers headers;
    write_headers(full, headers);
    for (const auto& [k, v] : headers) out.setHeader(k, v);
    write_call(out, "read", {});
    std::uint8_t* bytes;
    std::uint32_t size;
    memory->getBuffer(&bytes, &size);
    const Incoming in = peek(bytes + 4, size - 4, listener);
    CHECK(in.method == "read" && in.context.path == full.path && in.context.visits == full.visits);
    for (std::uint32_t n = 4; n < size; ++n) peek(bytes + 4, n - 4, listener);
}

}  // namespace

int main() {
    read_in<at::protocol::TBinaryProtocol>();
    read_in<at::protocol::TCompactProtocol>();
    theader();
    nonblocking();
    thread_pool();
    threaded<at::server::TThreadedServer>();
    return 0;
}
