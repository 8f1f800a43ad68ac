// SPDX-License-Identifier: Apache-2.0
#include "temper/pathfence/fence.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "file.h"

namespace temper::pathfence {
namespace {

Time steady() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr auto kWatchEvery = std::chrono::seconds(1);

// A file's text; none where it cannot be read, which loading it tells.
std::string text_of(const std::string& file) {
    try {
        return contents(file);
    } catch (const ConfigError&) {
        return {};
    }
}

}  // namespace

// Shared by the fence and its permits.
struct FenceState : std::enable_shared_from_this<FenceState> {
    using Waiters = std::unordered_map<std::int64_t, std::shared_ptr<Fence::Waiter>>;
    // A decision on its way to the one that it concerns.
    struct Delivery {
        std::shared_ptr<Fence::Waiter> waiter;
        std::int64_t id = 0;  // 0: refused
        const ClassLabel* of = nullptr;
        const char* reason = "";
    };
    // Most events decide about one request or none: the first takes no memory of its own.
    struct Deliveries {
        std::optional<Delivery> first;
        std::vector<Delivery> others;

        void add(Delivery d) {
            if (first)
                others.push_back(std::move(d));
            else
                first = std::move(d);
        }
        template <class F>
        void each(F f) {
            if (first) f(std::move(*first));
            for (Delivery& d : others) f(std::move(d));
        }
    };

    FenceState(const Config& config, Fence::Options o) : options(std::move(o)), core(config, now()) {}

    Time now() const { return options.clock ? options.clock() : steady(); }

    // Does something with the core under the lock, and afterwards delivers what was decided.
    template <class F>
    void with(F f) {
        Deliveries out;
        {
            const std::lock_guard<std::mutex> lock(mutex);
            add_deliveries(f(core, now()), out);
        }
        deliver(out);
    }

    // Finds those that wait for a decision.
    void add_deliveries(const Core::Decisions& decisions, Deliveries& out) {
        for (const Decision& d : decisions) {
            if (d.kind != Decision::Kind::grant && d.kind != Decision::Kind::shed) continue;
            auto waiter = take(d.id);
            if (!waiter) continue;  // a part of a request: share() has its permit already
            out.add({std::move(waiter), d.kind == Decision::Kind::grant ? d.id : 0, d.of, d.reason});
        }
    }

    void keep(std::int64_t id, std::shared_ptr<Fence::Waiter> waiter) {
        if (!spare) {
            waiters.emplace(id, std::move(waiter));
            return;
        }
        spare.key() = id;
        spare.mapped() = std::move(waiter);
        waiters.insert(std::move(spare));
    }

    // The waiter of a request that waits no longer, or null.
    std::shared_ptr<Fence::Waiter> take(std::int64_t id) {
        auto node = waiters.extract(id);
        if (!node) return nullptr;
        auto waiter = std::move(node.mapped());
        spare = std::move(node);
        return waiter;
    }

    // A callback may end its request at once, which leads to further decisions: the outermost call delivers those, so
    // that a long queue makes no deep stack.
    void deliver(Deliveries& deliveries) {
        thread_local std::vector<std::pair<std::shared_ptr<FenceState>, Delivery>>* pending = nullptr;
        if (!deliveries.first) return;
        if (pending) {
            deliveries.each([&](Delivery d) { pending->emplace_back(shared_from_this(), std::move(d)); });
            return;
        }
        std::vector<std::pair<std::shared_ptr<FenceState>, Delivery>> further;
        pending = &further;
        deliveries.each([&](Delivery&& d) { call(std::move(d)); });
        for (std::size_t i = 0; i < further.size(); ++i) {
            auto [state, d] = std::move(further[i]);
            state->call(std::move(d));
        }
        pending = nullptr;
    }

    void call(Delivery d);

    const Fence::Options options;
    mutable std::mutex mutex;
    Core core;
    Waiters waiters;
    Waiters::node_type spare;  // of one that was taken out, for the next
    std::int64_t last_id = 0;
    bool closed = false;
    std::string watch_error;
    std::condition_variable stop;
    std::thread ticker;

    // The ticker's thread: every quarter of a window.
    void run() {
        std::optional<std::string> seen;  // as it was read last: its time and size may stay the same when it changes
        auto looked = std::chrono::steady_clock::now();
        std::unique_lock<std::mutex> lock(mutex);
        while (!closed) {
            stop.wait_for(lock, std::chrono::nanoseconds(core.config().window / 4));
            if (closed) return;
            lock.unlock();
            with([](Core& c, Time t) -> const Core::Decisions& { return c.tick(t); });
            if (!options.watch.empty() && std::chrono::steady_clock::now() - looked >= kWatchEvery) {
                looked = std::chrono::steady_clock::now();
                std::string now = text_of(options.watch);
                const bool changed = now != seen;
                seen = std::move(now);
                if (changed || !watch_error.empty()) reload_file(changed);  // only this thread writes watch_error
            }
            lock.lock();
        }
    }

    // What was wrong may have been beside the file, and right by now: that is told only where it is news.
    void reload_file(bool changed) {
        std::string error;
        try {
            reload(load_config(options.watch));
        } catch (const ConfigError& e) {
            error = e.what();
        }
        {
            const std::lock_guard<std::mutex> lock(mutex);
            changed = changed || error != watch_error;
            watch_error = error;
        }
        try {
            if (changed && options.reloaded) options.reloaded(error);
        } catch (...) {
            failed(std::current_exception());
        }
    }

    // Takes what a callback threw, where nobody is left to catch it.
    void failed(std::exception_ptr thrown) {
        if (!options.errors) return print("a callback", thrown);
        try {
            options.errors(thrown);
        } catch (...) {
            print("a callback", thrown);
            print("Options::errors", std::current_exception());
        }
    }

    static void print(const std::string& who, std::exception_ptr thrown) {
        std::string what = "what is no std::exception";
        try {
            std::rethrow_exception(thrown);
        } catch (const std::exception& e) {
            what = e.what();
        } catch (...) {
        }
        std::cerr << "pathfence: " + who + " threw: " + what + "\n";
    }

    void reload(const Config& config) {
        checked(config);
        bool refused = false;
        with([&](Core& c, Time t) -> const Core::Decisions& { return c.reload(t, config, refused); });
        if (refused) throw ConfigError("more than 64 classes were named since the start: take names that were there, or restart the service");
    }
};

Permit::Permit(std::shared_ptr<FenceState> state, std::int64_t id, const ClassLabel* of)
    : state_(std::move(state)), id_(id), of_(of), exceptions_(std::uncaught_exceptions()) {}

Permit::Permit(Permit&& other) noexcept
    : state_(std::move(other.state_)), id_(other.id_), of_(other.of_), exceptions_(std::uncaught_exceptions()) {}

Permit& Permit::operator=(Permit&& other) noexcept {
    if (this == &other) return *this;
    release(Outcome::ok);
    state_ = std::move(other.state_);
    id_ = other.id_;
    of_ = other.of_;
    exceptions_ = std::uncaught_exceptions();
    return *this;
}

Permit::~Permit() { release(std::uncaught_exceptions() > exceptions_ ? Outcome::fail : Outcome::ok); }

void Permit::release(Outcome outcome) {
    if (!state_) return;
    const auto state = std::move(state_);
    state_ = nullptr;
    state->with([&](Core& c, Time t) -> const Core::Decisions& { return c.done(t, id_, outcome); });
}

// Most edges are known already: requests need not take the lock for that.
void Permit::edge(const std::string& name) const {
    if (!state_ || of_->edges.settled(name)) return;
    state_->with([&](Core& c, Time t) -> const Core::Decisions& { return c.edge(t, id_, name); });
}

Permit Permit::share() const {
    if (!state_) throw std::logic_error("a permit that was given back cannot be shared");
    std::int64_t id = 0;
    state_->with([&](Core& c, Time t) -> const Core::Decisions& {
        id = ++state_->last_id;
        return c.arrive(t, {id, {}, 0, false, 0, id_});
    });
    return {state_, id, of_};
}

// The callbacks end with the call: what they hold is not kept until others were called.
void FenceState::call(Delivery d) {
    try {
        if (d.id != 0)
            d.waiter->granted(Fence::permit(shared_from_this(), d.id, d.of));
        else
            d.waiter->refused(d.reason);
    } catch (...) {
        // The permit went back when the callback was left; whoever threw has no caller here.
        failed(std::current_exception());
    }
}

Permit Fence::permit(std::shared_ptr<FenceState> state, std::int64_t id, const ClassLabel* of) { return {std::move(state), id, of}; }

Fence::Fence(const Config& config, Options options) : state_(std::make_shared<FenceState>(config, std::move(options))) {
    if (state_->options.ticker) state_->ticker = std::thread([s = state_.get()] { s->run(); });
}

Fence::~Fence() {
    FenceState::Deliveries out;
    {
        const std::lock_guard<std::mutex> lock(state_->mutex);
        state_->closed = true;
        // Permits that come back later find nobody who waits.
        for (auto& [id, w] : state_->waiters) out.add({std::move(w), 0, nullptr, "closed"});
        std::vector<std::int64_t> ids;
        for (const auto& [id, w] : state_->waiters) ids.push_back(id);
        state_->waiters.clear();
        for (const auto id : ids) state_->core.done(state_->now(), id, Outcome::cancel);
    }
    state_->stop.notify_all();
    if (state_->ticker.joinable()) state_->ticker.join();
    state_->deliver(out);
}

Fence::Ticket Fence::submit(const Call& call, Granted granted, Refused refused) {
    struct Callbacks : Waiter {
        Callbacks(Granted g, Refused r) : on_grant(std::move(g)), on_refusal(std::move(r)) {}
        void granted(Permit permit) override { on_grant(std::move(permit)); }
        void refused(const char* reason) override { on_refusal(reason); }

        const Granted on_grant;
        const Refused on_refusal;
    };
    return submit(call, std::make_shared<Callbacks>(std::move(granted), std::move(refused)));
}

Fence::Ticket Fence::submit(const Call& call, std::shared_ptr<Waiter> waiter) {
    if (call.timeout < 0 || call.depth < 0) throw std::invalid_argument("a call's timeout and depth must be 0 or more");
    Ticket ticket = 0;
    state_->with([&](Core& c, Time t) -> const Core::Decisions& {
        ticket = ++state_->last_id;
        state_->keep(ticket, std::move(waiter));
        return c.arrive(t, {ticket, call.key, call.timeout ? t + std::min(call.timeout, kLongest) : 0, call.shortens, call.depth, 0});
    });
    return ticket;
}

bool Fence::cancel(Ticket ticket) {
    std::shared_ptr<Waiter> waiter;
    state_->with([&](Core& c, Time t) -> const Core::Decisions& {
        static const Core::Decisions none;
        waiter = state_->take(ticket);
        return waiter ? c.done(t, ticket, Outcome::cancel) : none;
    });
    return waiter != nullptr;
}

Permit Fence::acquire(const Call& call) {
    struct Place {
        std::mutex mutex;
        std::condition_variable decided;
        bool over = false;
        Permit permit;
        std::string reason;
    };
    const auto place = std::make_shared<Place>();
    const auto decide = [place](Permit permit, const char* reason) {
        const std::lock_guard<std::mutex> lock(place->mutex);
        place->over = true;
        place->permit = std::move(permit);
        place->reason = reason;
        place->decided.notify_one();
    };
    submit(call, [decide](Permit p) { decide(std::move(p), ""); }, [decide](const char* reason) { decide({}, reason); });
    std::unique_lock<std::mutex> lock(place->mutex);
    place->decided.wait(lock, [&] { return place->over; });
    if (!place->permit) throw Shed(place->reason);
    return std::move(place->permit);
}

void Fence::tick() {
    state_->with([](Core& c, Time t) -> const Core::Decisions& { return c.tick(t); });
}

void Fence::reload(const Config& config) { state_->reload(config); }

void Fence::off(bool off) {
    state_->with([off](Core& c, Time t) -> const Core::Decisions& { return c.off(t, off); });
}

State Fence::state() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    const Core& c = state_->core;
    return {c.config().off, c.config().workers, c.in_flight(), c.waiting(), state_->watch_error, c.states()};
}

std::vector<ClassState> Fence::states() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->core.states();
}

std::int64_t Fence::in_flight() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->core.in_flight();
}

std::int64_t Fence::waiting() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->core.waiting();
}

std::string Fence::watch_error() const {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    return state_->watch_error;
}

namespace {

thread_local const Permit* serving = nullptr;

}  // namespace

Serving::Serving(const Permit& permit) : before_(serving) { serving = &permit; }

Serving::~Serving() { serving = before_; }

const Permit* Serving::here() { return serving; }

}  // namespace temper::pathfence
