// SPDX-License-Identifier: Apache-2.0
// Two paths on one pool: when orders get slow, items do not.
//
//     PATHFENCE_CONFIG=pathfence.json shop serve 9090    until its standard input ends
//     shop ask 9090 item 7
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/server/TNonblockingServer.h>
#include <thrift/transport/TBufferTransports.h>
#include <thrift/transport/TSocket.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <thread>

#include "Shop.h"
#include "temper/pathfence/state.h"
#include "temper/pathfence/thrift/server.h"

namespace at = apache::thrift;
namespace pf = temper::pathfence;
using at::protocol::TBinaryProtocol;
using at::protocol::TBinaryProtocolFactory;

struct Handler : example::ShopIf {
    void item(std::string& answer, std::int64_t id) override { answer = "item " + std::to_string(id); }

    void order(std::string& answer, std::int64_t id) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the slow downstream
        answer = "order " + std::to_string(id);
    }
};

struct Announcer : at::server::TServerEventHandler {
    explicit Announcer(at::server::TNonblockingServer& s) : server(s) {}
    void preServe() override { std::cout << "listening on " << server.getListenPort() << std::endl; }
    at::server::TNonblockingServer& server;
};

// The fence needs nothing in the handler: it stands between the server's parts.
void serve(int port) {
    const pf::Config config = pf::load_config();  // the file that PATHFENCE_CONFIG names
    pf::Fence::Options options;
    if (const char* file = std::getenv("PATHFENCE_CONFIG")) options.watch = file;  // put in force when it changes
    const auto fence = std::make_shared<pf::Fence>(config, options);
    const pf::StateSocket state(*fence, "shop.sock");  // pathfence top ./shop.sock

    pf::thrift::Listener listener;
    listener.service = "shop";
    const auto threads = std::make_shared<pf::thrift::FencedThreadManager>(fence, config.workers);
    threads->start();
    const auto socket = std::make_shared<pf::thrift::FencedServerSocket>(port, listener);
    const auto processor = std::make_shared<example::ShopProcessor>(std::make_shared<Handler>());
    at::server::TNonblockingServer server(std::make_shared<pf::thrift::FencedProcessor>(processor, listener),
                                          std::make_shared<TBinaryProtocolFactory>(), socket, threads);
    server.setServerEventHandler(std::make_shared<Announcer>(server));
    std::thread ending([&] {
        std::cin.ignore(std::numeric_limits<std::streamsize>::max());
        threads->stop();  // first, so that who waits is told
        server.stop();
    });
    server.serve();
    ending.join();
}

std::string ask(int port, const std::string& path, std::int64_t id) {
    const auto transport = std::make_shared<at::transport::TFramedTransport>(std::make_shared<at::transport::TSocket>("127.0.0.1", port));
    transport->open();
    example::ShopClient client(std::make_shared<TBinaryProtocol>(transport));
    std::string answer;
    if (path == "order")
        client.order(answer, id);
    else
        client.item(answer, id);
    return answer;
}

int main(int count, char** arguments) {
    const std::vector<std::string> words(arguments + 1, arguments + count);
    try {
        if (words.size() == 2 && words[0] == "serve") {
            serve(std::stoi(words[1]));
        } else if (words.size() == 4 && words[0] == "ask") {
            std::cout << ask(std::stoi(words[1]), words[2], std::stoll(words[3])) << "\n";
        } else {
            std::cerr << "usage: shop serve PORT | shop ask PORT item|order ID\n";
            return 2;
        }
    } catch (const std::exception& e) {
        std::cerr << "shop: " << e.what() << "\n";
        return 1;
    }
    return 0;
}
