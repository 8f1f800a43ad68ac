// SPDX-License-Identifier: Apache-2.0
// What is particular to TNonblockingServer: frames in pieces, requests that wait without a worker, calls without an answer.
#include <sys/socket.h>

#include <chrono>

#include "thrift_service.h"

namespace {

// A request that waits for a worker has less time left when it gets one, and so have the calls below it.
TEST_CASE("a wait is time used") {
    Gate gate;
    Context onward;
    FencedServer server(slow_and_quick(1), shared, [&](const std::string& method) {
        if (method == "slow") gate.pass();
        if (method == "quick") onward = onward_here();
    }, 1);
    auto slow = std::async(std::launch::async, [&] { return call(server.port(), "slow"); });
    while (server.fence->in_flight() == 0) std::this_thread::yield();
    auto quick = std::async(std::launch::async, [&] { return call(server.port(), "quick", {"quick", 100'000 * kMillisecond, ""}); });
    while (server.fence->waiting() == 0) std::this_thread::yield();
    const auto from = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - from < std::chrono::milliseconds(30)) std::this_thread::yield();
    gate.open();
    CHECK(slow.get().empty());
    CHECK(quick.get().empty());
    CHECK(onward.timeout > 0);
    CHECK(onward.timeout <= 99'970 * kMillisecond);
}

// A oneway call has no answer, also where it is refused: the next answer on its connection is the next call's.
TEST_CASE("a oneway call is never answered") {
    Gate gate;
    FencedServer server(slow_and_quick(1), shared, slow_at(gate), 1);
    auto slow = std::async(std::launch::async, [&] { return call(server.port(), "slow"); });
    while (server.fence->in_flight() == 0) std::this_thread::yield();
    const auto connection = connected(server.port());
    write_call(*connection, join_name({"", 10 * kMillisecond, ""}, "quick"), {}, at::protocol::T_ONEWAY);
    const auto refused = [&] {
        for (const auto& k : server.fence->states())
            if (k.shed > 0) return true;
        return false;
    };
    while (!refused()) std::this_thread::yield();
    gate.open();
    CHECK(slow.get().empty());
    write_call(*connection, "served", {}, at::protocol::T_ONEWAY);
    write_call(*connection, "quick", {});
    CHECK(read_reply(*connection, "quick").empty());
}

// A frame may hold several messages. Of the first, what stands before its name has been read with the frame; of the
// others it has not.
TEST_CASE("each message of a frame has its name") {
    std::vector<std::string> served;
    FencedServer server(slow_and_quick(1), shared, [&](const std::string& method) { served.push_back(method); });
    for (const bool prefixed : {false, true}) {
        const auto first = message<at::protocol::TBinaryProtocol>(prefixed ? join_name({"quick", 0, ""}, "first") : "first", {});
        const auto second = message<at::protocol::TBinaryProtocol>(join_name({"quick", 0, ""}, "second"), {});
        const auto connection = connected(server.port());
        connection->getTransport()->write(first.data(), static_cast<std::uint32_t>(first.size()));
        connection->getTransport()->write(second.data(), static_cast<std::uint32_t>(second.size()));
        connection->getTransport()->flush();
        CHECK(read_reply(*connection, "first").empty());
        CHECK(read_reply(*connection, "second").empty());
    }
    CHECK((served == std::vector<std::string>{"first", "second", "first", "second"}));
}

struct OpenSocket : FencedServerSocket {
    using FencedServerSocket::FencedServerSocket;
    using FencedServerSocket::createSocket;
};

// A connection as a server on this thread has it, and its client's end.
struct Peer {
    explicit Peer(const Listener& l) : socket(0, l) {
        int ends[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        client = std::make_shared<at::transport::TSocket>(ends[0]);
        server = socket.createSocket(ends[1]);
    }
    void send(const std::vector<std::uint8_t>& bytes) { client->write(bytes.data(), static_cast<std::uint32_t>(bytes.size())); }
    void read(std::size_t size) {
        std::vector<std::uint8_t> to(size);
        for (std::size_t got = 0; got < size;) got += server->read(to.data() + got, static_cast<std::uint32_t>(size - got));
    }

    OpenSocket socket;
    std::shared_ptr<at::transport::TSocket> client, server;
};

std::vector<std::uint8_t> frame(const std::string& method, const Headers& carrier) {
    auto bytes = message<at::protocol::TBinaryProtocol>(method, carrier);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    for (int shift = 0; shift < 32; shift += 8) bytes.insert(bytes.begin(), static_cast<std::uint8_t>(size >> shift));
    return bytes;
}

struct Nothing : at::concurrency::Runnable {
    void run() override {}
};

// Frames come in pieces, on several connections and for several sockets on one thread; a task has the key of the frame
// that ended last, and what is no frame's task has none.
TEST_CASE("a task has its frame's key") {
    const auto fence = std::make_shared<Fence>(slow_and_quick(4));
    FencedThreadManager manager(fence, 4);
    manager.start();
    const auto add = [&] {
        manager.add(std::make_shared<Nothing>());
        while (fence->in_flight() + fence->waiting() > 0) std::this_thread::yield();
    };
    const auto granted = [&](const std::string& name) -> std::int64_t {
        for (const auto& k : fence->states())
            if (k.name == name) return k.granted;
        return 0;
    };
    Listener other = shared;
    other.keys = {{"quick", "slow"}};
    Peer one(shared), two(other);
    const auto quick = frame("quick", {}), large = frame("quick", {{"x", std::string(10'000, 'x')}});
    one.send(quick);
    two.send(large);
    for (std::size_t i = 0; i + 1 < quick.size(); ++i) one.read(1);
    two.read(large.size());
    add();
    CHECK(granted("slow") == 1);
    CHECK(granted("quick") == 0);
    one.read(1);
    add();
    CHECK(granted("slow") == 1);
    CHECK(granted("quick") == 1);
    add();
    CHECK(granted("slow") == 1);
    CHECK(granted("quick") == 1);
    CHECK(granted("~u0") == 1);
    one.send(large);
    one.send(quick);
    one.read(large.size());
    add();
    one.read(quick.size());
    add();
    CHECK(granted("quick") == 3);
}

// What was granted is served, what waits is refused, and who comes later loses the connection, as with Thrift's own.
TEST_CASE("everybody is told when the threads stop") {
    using State = FencedThreadManager::STATE;
    Gate gate;
    FencedServer server(slow_and_quick(1), shared, slow_at(gate), 1);
    CHECK(server.threads->state() == State::STARTED);
    auto slow = std::async(std::launch::async, [&] { return call(server.port(), "slow"); });
    while (server.fence->in_flight() == 0) std::this_thread::yield();
    std::vector<std::future<std::string>> quick;
    for (int i = 0; i < 3; ++i) quick.push_back(std::async(std::launch::async, [&] { return call(server.port(), "quick"); }));
    while (server.fence->waiting() < 3) std::this_thread::yield();
    auto stopped = std::async(std::launch::async, [&] { server.threads->stop(); });
    while (server.threads->state() != State::JOINING) std::this_thread::yield();
    gate.open();
    CHECK(slow.get().empty());
    for (auto& q : quick) CHECK(q.get() == "pf-shed: closed");
    stopped.get();
    CHECK(server.threads->state() == State::STOPPED);
    CHECK(server.fence->in_flight() + server.fence->waiting() == 0);
    at::GlobalOutput.setOutputFunction([](const char*) {});  // the server says that it closes the connection
    CHECK_THROWS_AS(call(server.port(), "quick"), at::transport::TTransportException);
    CHECK(server.fence->in_flight() == 0);
}

}  // namespace
