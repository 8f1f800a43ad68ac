// SPDX-License-Identifier: Apache-2.0
// The kinds of process that the benchmark starts. Each says on standard output which ports it listens on, which the
// kernel chooses, and serves until its standard input ends.
#pragma once

#include <thrift/server/TNonblockingServer.h>

#include <map>
#include <string>
#include <vector>

namespace bench {

struct DownstreamOptions {
    std::size_t threads = 1;
    std::int64_t percent = 100;  // of a request's work that it does: a cache does less than what it stands before
};

// Works by sleeping, one call a thread. A line "slow N" on standard input makes calls that start from then on take N
// times as long.
void run_downstream(const DownstreamOptions& options);

struct ServiceOptions {
    std::size_t workers = 16;
    std::map<std::string, std::vector<int>> downstreams;  // a path's ports, in the order in which they are called
    bool bulkhead = false;                                // each path has a port, and an equal part of the workers, of its own
    std::size_t most = 0;                                 // shedding: so many requests may wait or be under way; 0: without
    int target_ms = 250;                                  // shedding: what has waited for so long is refused
    int expire_ms = 0;                                    // Thrift's own expiry of tasks; 0: without
    std::string fence;                                    // its configuration as JSON; empty: without
    // There are fenced services among the downstreams: they are told what travels with a request. What works only takes no notice.
    bool onward = false;
    // Its name in what travels with a request: then peers are services that may choose keys and depths. Empty: it has none,
    // and they may not.
    std::string name;
};

// Passes each call on to its path's downstreams, one after the other.
void run_service(const ServiceOptions& options);

// Listens on nothing; from the first line on standard input on it takes what it can get: of a CPU, or, streaming, of the
// memory's bandwidth.
void run_neighbour(bool streaming);

// A thread manager of Thrift's own, started.
std::shared_ptr<apache::thrift::concurrency::ThreadManager> start(std::shared_ptr<apache::thrift::concurrency::ThreadManager> manager);

// Starts servers, by name, on threads of their own, and says which ports they listen on.
void serve(const std::map<std::string, std::shared_ptr<apache::thrift::server::TNonblockingServer>>& servers);

}  // namespace bench
