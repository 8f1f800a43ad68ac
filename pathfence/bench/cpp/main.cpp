// SPDX-License-Identifier: Apache-2.0
// pathfence-bench-node: a service, a downstream or a neighbour of the benchmark. The controller in .. starts it.
#include <thrift/concurrency/ThreadFactory.h>

#include <getopt.h>

#include <csignal>
#include <future>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "node.h"

namespace bench {

namespace at = apache::thrift;

std::shared_ptr<at::concurrency::ThreadManager> start(std::shared_ptr<at::concurrency::ThreadManager> manager) {
    manager->threadFactory(std::make_shared<at::concurrency::ThreadFactory>());
    manager->start();
    return manager;
}

void serve(const std::map<std::string, std::shared_ptr<at::server::TNonblockingServer>>& servers) {
    struct Ready : at::server::TServerEventHandler {
        void preServe() override { promise.set_value(); }
        std::promise<void> promise;
    };
    std::string ports;
    for (const auto& [name, server] : servers) {
        const auto ready = std::make_shared<Ready>();
        server->setServerEventHandler(ready);
        std::thread([server = server] { server->serve(); }).detach();
        ready->promise.get_future().wait();
        ports += " " + name + "=" + std::to_string(server->getListenPort());
    }
    std::cout << "listening" << ports << std::endl;
}

}  // namespace bench

namespace {

// Reads NAME=PORT into a map.
void add_port(std::map<std::string, std::vector<int>>& to, const std::string& text) {
    const auto equals = text.find('=');
    if (equals == std::string::npos) throw std::invalid_argument(text + " is not NAME=PORT");
    to[text.substr(0, equals)].push_back(std::stoi(text.substr(equals + 1)));
}

enum Option { kThreads = 1, kWorkers, kDownstream, kBulkhead, kMost, kTarget, kExpire, kFence, kOnward, kName, kPercent };

const option kOptions[] = {
    {"threads", required_argument, nullptr, kThreads}, {"workers", required_argument, nullptr, kWorkers},   {"downstream", required_argument, nullptr, kDownstream},
    {"bulkhead", no_argument, nullptr, kBulkhead},     {"most", required_argument, nullptr, kMost},         {"target-ms", required_argument, nullptr, kTarget},
    {"expire-ms", required_argument, nullptr, kExpire}, {"fence", required_argument, nullptr, kFence},       {"onward", no_argument, nullptr, kOnward},
    {"name", required_argument, nullptr, kName},       {"percent", required_argument, nullptr, kPercent},
    {nullptr, 0, nullptr, 0},
};

void run(int count, char** arguments) {
    bench::DownstreamOptions downstream;
    bench::ServiceOptions service;
    for (int o; (o = getopt_long(count, arguments, "", kOptions, nullptr)) != -1;) switch (o) {
            case kThreads: downstream.threads = std::stoul(optarg); break;
            case kPercent: downstream.percent = std::stol(optarg); break;
            case kWorkers: service.workers = std::stoul(optarg); break;
            case kDownstream: add_port(service.downstreams, optarg); break;
            case kBulkhead: service.bulkhead = true; break;
            case kMost: service.most = std::stoul(optarg); break;
            case kTarget: service.target_ms = std::stoi(optarg); break;
            case kExpire: service.expire_ms = std::stoi(optarg); break;
            case kFence: service.fence = optarg; break;
            case kOnward: service.onward = true; break;
            case kName: service.name = optarg; break;
            default: throw std::invalid_argument("see node.h for the options");
        }
    const std::string kind = optind < count ? arguments[optind] : "";
    if (kind == "downstream")
        bench::run_downstream(downstream);
    else if (kind == "service")
        bench::run_service(service);
    else if (kind == "spin" || kind == "stream")
        bench::run_neighbour(kind == "stream");
    else
        throw std::invalid_argument("neither downstream, service, spin nor stream");
}

}  // namespace

int main(int count, char** arguments) try {
    std::signal(SIGPIPE, SIG_IGN);
    apache::thrift::GlobalOutput.setOutputFunction([](const char*) {});  // a client that gave up is no news here
    run(count, arguments);
    std::_Exit(0);  // its threads serve to the end
} catch (const std::exception& x) {
    std::cerr << "pathfence-bench-node: " << x.what() << std::endl;
    std::_Exit(2);
}
