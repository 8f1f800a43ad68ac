// SPDX-License-Identifier: Apache-2.0
// What a fence does, for those who watch it: ../../../../spec/state.md has each figure.
#pragma once

#include <memory>
#include <string>

#include "temper/pathfence/fence.h"

namespace temper::pathfence {

// As the Java starter's /actuator/pathfence has it.
std::string to_json(const State& state);

// In the text format of Prometheus, under the names that Micrometer gives the Java side's. For a service's own /metrics.
std::string to_metrics(const State& state);

// Says the fence's state to whoever connects to a Unix socket, as JSON, and closes: what `pathfence top` reads. A thread of
// its own answers one at a time; who does not read within a second gets no more.
class StateSocket {
public:
    // The file is made with mode 0660: who may read it is its folder's and its group's to say. One that was left behind is
    // replaced. Throws std::system_error, with EADDRINUSE if another process answers there. The fence has to outlive it.
    StateSocket(const Fence& fence, const std::string& path);
    // Removes the file.
    ~StateSocket();
    StateSocket(const StateSocket&) = delete;
    StateSocket& operator=(const StateSocket&) = delete;

private:
    struct Server;
    std::unique_ptr<Server> server_;
};

}  // namespace temper::pathfence
