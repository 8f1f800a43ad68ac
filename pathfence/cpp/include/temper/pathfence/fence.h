// SPDX-License-Identifier: Apache-2.0
// The engine that a service uses: the core behind one lock, with a clock, a ticker and permits that cannot be lost.
//
// A request asks for a permit before it takes a worker. submit() parks it without a thread; acquire() blocks the
// caller, for servers that have a thread for each connection anyway. Callbacks run outside the lock, on whichever
// thread brought the decision about, the ticker's included: they must not block, so no acquire() in them, and must not
// destroy the fence. One that throws gives its permit back as failed, and what it threw goes to Options::errors.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "temper/pathfence/core.h"

namespace temper::pathfence {

class Fence;
struct FenceState;

// The request was refused. A retry helps nobody.
struct Shed : std::runtime_error {
    explicit Shed(const std::string& why) : std::runtime_error("pf-shed: " + why), reason(why) {}
    std::string reason;
};

// The right to hold a worker; given back when it goes out of scope. That counts as a failure while an exception leaves
// the scope, and as a success otherwise, unless release() said something before.
class Permit {
public:
    Permit() = default;
    Permit(Permit&& other) noexcept;
    Permit& operator=(Permit&& other) noexcept;
    ~Permit();

    explicit operator bool() const { return state_ != nullptr; }
    void release(Outcome outcome);
    // The request uses a downstream edge: how classes are learned.
    void edge(const std::string& name) const;
    // A permit for a part of this request on the same pool. The worker counts as free when the last is given back. Of a permit
    // that was given back: std::logic_error.
    Permit share() const;
    const std::string& class_name() const { return of_->name; }

private:
    friend class Fence;
    Permit(std::shared_ptr<FenceState> state, std::int64_t id, const ClassLabel* of);

    std::shared_ptr<FenceState> state_;
    std::int64_t id_ = 0;
    const ClassLabel* of_ = nullptr;
    int exceptions_ = 0;
};

// What is known of a request when it comes.
struct Call {
    std::string key;
    Time timeout = 0;        // what is left until its deadline, 600 s at most; 0: the class's target; below: std::invalid_argument
    std::int64_t depth = 0;  // how often its chain of calls has been in this service before
    bool shortens = false;   // the timeout may only shorten the class's target, as that of a peer that is not trusted
};

// What the fence does, at one moment.
struct State {
    bool off = false;
    std::int64_t workers = 0, in_flight = 0, waiting = 0;
    std::string watch_error;  // why the watched file is not in force, or nothing
    std::vector<ClassState> classes;
};

class Fence {
public:
    struct Options {
        std::function<Time()> clock;  // monotonic; without one the steady clock
        bool ticker = true;           // a thread of the fence's own; else somebody calls tick()
        std::string watch;            // a configuration file that is put in force when it changes
        // Called with each new version of that file: why it is not in force, or nothing. On the ticker's thread.
        std::function<void(const std::string& error)> reloaded;
        // Called with what a callback threw. Without it that is said on standard error, and so is what it throws itself.
        std::function<void(std::exception_ptr thrown)> errors = {};
    };

    // Who waits for a permit. The fence holds it until it has called one of the two.
    class Waiter {
    public:
        virtual ~Waiter() = default;
        virtual void granted(Permit permit) = 0;
        virtual void refused(const char* reason) = 0;
    };
    using Granted = std::function<void(Permit)>;
    using Refused = std::function<void(const char* reason)>;
    using Ticket = std::int64_t;

    explicit Fence(const Config& config) : Fence(config, Options{}) {}
    Fence(const Config& config, Options options);
    // Refuses all that still waits ("closed"). Permits may outlive the fence; they keep its clock.
    ~Fence();
    Fence(const Fence&) = delete;
    Fence& operator=(const Fence&) = delete;

    // Exactly one of the two is called, once, possibly before submit returns; unless cancel() says that neither is.
    Ticket submit(const Call& call, Granted granted, Refused refused);
    Ticket submit(const Call& call, std::shared_ptr<Waiter> waiter);
    // The client went away: true if the request still waited, and neither callback will be called.
    bool cancel(Ticket ticket);
    // Waits for a permit; throws Shed.
    Permit acquire(const Call& call);

    void tick();
    void reload(const Config& config);  // throws ConfigError, and then changes nothing
    void off(bool off);

    State state() const;
    std::vector<ClassState> states() const;
    std::int64_t in_flight() const;
    std::int64_t waiting() const;
    // Why the watched file is not in force, or nothing.
    std::string watch_error() const;

private:
    friend struct FenceState;
    static Permit permit(std::shared_ptr<FenceState> state, std::int64_t id, const ClassLabel* of);

    std::shared_ptr<FenceState> state_;
};

// The permit of the request that this thread serves, for client code further down.
class Serving {
public:
    explicit Serving(const Permit& permit);
    ~Serving();
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

    // Null outside of any.
    static const Permit* here();

private:
    const Permit* before_;
};

}  // namespace temper::pathfence
