// SPDX-License-Identifier: Apache-2.0
// Events. algorithm.md: "Events", "Windows", "Fan-out", "Operation".
#include "class.h"

namespace temper::pathfence {

Core::Core(const Config& config, Time now) : config_(checked(config)), now_(now), window_start_(now), buckets_(config_.unknown_buckets) {
    levels_.fill(kNever);
    for (std::int64_t i = 0; i < buckets_; ++i) {
        ClassConfig k;
        k.name = "~u" + std::to_string(i);
        k.weight = kDefaultWeight;
        k.target = config_.target;
        Class& c = add_class(k);
        c.unknown = true;
        c.limit = unknown_limit();
        c.seen = kNever;
    }
    configure();
}

Core::~Core() = default;

Core::Class& Core::add_class(const ClassConfig& k) {
    auto c = std::make_unique<Class>();
    c->index = static_cast<std::int64_t>(classes_.size());
    c->name = k.name;
    c->weight = k.weight;
    c->target = k.target;
    c->seen = c->last_turn = c->window.touched = now_;
    c->limit = k.limit > 0 ? std::min(k.limit, config_.workers) : config_.workers;
    c->hold = k.hold;
    classes_.push_back(std::move(c));
    return *classes_.back();
}

// Puts config_ in force; the classes of an earlier one stay, without keys.
void Core::configure() {
    configured_.clear();
    for (const auto& k : config_.classes) {
        Class* c = named(k.name);
        if (!c) c = &add_class(k);
        c->weight = k.weight;
        c->target = k.target;
        for (const auto& key : k.keys) configured_[key] = c;
    }
    for (auto& c : classes_) c->limit = c->unknown ? unknown_limit() : std::min(c->limit, config_.workers);
    share_out();
}

Core::Class* Core::named(const std::string& name) const {
    for (const auto& c : classes_)
        if (c->name == name) return c.get();
    return nullptr;
}

std::int64_t Core::unknown_limit() const { return std::max<std::int64_t>(1, config_.workers / 8); }

void Core::empty_samples() {
    for (auto& c : classes_) {
        c->touch(now_);
        c->sample = {};
    }
}

Core::Decisions Core::reload(Time now, const Config& wanted, bool& refused) {
    advance(now);
    refused = true;
    Config config;
    try {
        config = checked(wanted);
    } catch (const ConfigError&) {
        return take();
    }
    std::size_t added = 0;
    for (const auto& k : config.classes) added += !named(k.name);
    if (classes_.size() + added > static_cast<std::size_t>(buckets_) + kMaxClasses) return take();
    refused = false;
    empty_samples();
    for (auto& c : classes_)
        if (c->limit == config_.workers) c->limit = config.workers;
    config_ = std::move(config);
    configure();
    pump();
    return take();
}

Core::Decisions Core::off(Time now, bool off) {
    advance(now);
    config_.off = off;
    empty_samples();
    pump();
    return take();
}

Time Core::target(const std::string& key) { return class_of(key).target; }

Core::Decisions Core::tick(Time now) {
    advance(now);
    if (!config_.off)
        for (auto& c : classes_) sweep(*c);
    pump();
    return take();
}

Core::Decisions Core::arrive(Time now, const Arrival& in) {
    advance(now);
    if (waiting_.count(in.id) || running_.count(in.id)) return take();
    if (const auto p = running_.find(in.parent); p != running_.end()) {
        inherit(in, p->second.get());
        return take();
    }
    Class& c = class_of(in.key);
    auto owned = std::make_unique<Request>();
    Request* r = owned.get();
    r->id = in.id;
    r->order = ++order_;
    r->key = in.key;
    r->of = &c;
    r->arrived = now_;
    r->deadline = in.deadline ? in.deadline : now_ + c.target;
    r->depth = std::max<std::int64_t>(in.depth, 0);
    waiting_[in.id] = std::move(owned);
    arrived(c);
    if (r->depth > kMaxDepth) {
        shed(r, "depth");
        return take();
    }
    if (r->depth > 0) {
        levels_[static_cast<std::size_t>(r->depth)] = now_;
        nested_.push_back(r);
    } else {
        enqueue(c, r);
    }
    note_demand(c);
    pump();
    return take();
}

// Runs a part of a request on that request's permit.
void Core::inherit(const Arrival& in, Request* parent) {
    while (parent->parent) parent = parent->parent;
    ++parent->sharers;
    auto r = std::make_unique<Request>();
    r->id = in.id;
    r->of = parent->of;
    r->parent = parent;
    grant_decision(*r, false, "inherited");
    running_[in.id] = std::move(r);
}

Core::Decisions Core::done(Time now, std::int64_t id, Outcome outcome) {
    advance(now);
    if (const auto w = waiting_.find(id); w != waiting_.end()) {
        unqueue(w->second.get());
        waiting_.erase(w);
        pump();
        return take();
    }
    const auto it = running_.find(id);
    if (it == running_.end() || it->second->done) return take();
    Request* owner = it->second.get();
    if (owner->parent) {
        owner = owner->parent;
        running_.erase(it);
    } else {
        owner->done = true;
        owner->outcome = outcome;
    }
    if (--owner->sharers == 0) {
        const auto ended = running_.find(owner->id);
        release(*owner);
        running_.erase(ended);
        pump();
    }
    return take();
}

void Core::release(Request& r) {
    Class& c = *r.of;
    c.touch(now_);
    --c.in_flight;
    --in_flight_;
    c.last_turn = now_;
    finished(c, r);
    if (r.outcome == Outcome::ok) learn_key(r.key);
}

void Core::finished(Class& c, const Request& r) {
    if (r.outcome == Outcome::cancel) return;
    ++c.window.done;
    if (r.outcome == Outcome::fail) {
        ++c.failed;
        return;
    }
    ++(now_ <= r.deadline ? c.window.good : c.missed);
    c.holds.note(std::min(now_ - r.granted, kLongestHold));
    c.hold = c.holds.value();
}

// Brings the clock forward, and closes a window that is over. A clock that goes back stands still.
void Core::advance(Time now) {
    now_ = std::max(now_, now);
    const Time length = now_ - window_start_;
    if (length < config_.window) return;
    close_window(length);
    window_start_ = now_;
}

Core::Decisions Core::take() {
    Decisions d;
    d.swap(decisions_);
    return d;
}

void Core::grant_decision(const Request& r, bool lent, const char* reason) {
    decisions_.push_back({Decision::Kind::grant, r.id, &r.of->name, lent, reason, 0});
}

std::vector<ClassState> Core::states() const {
    std::vector<ClassState> out;
    for (const auto& c : classes_) {
        if (c->unknown && c->granted + c->shed == 0 && c->queue.empty()) continue;
        out.push_back({c->name, c->limit, c->reserve, c->in_flight, static_cast<std::int64_t>(c->queue.size()), std::max<std::int64_t>(0, c->in_flight - c->reserve),
                       c->granted, c->shed, c->missed, c->failed, c->knee, c->hold, c->reason});
    }
    return out;
}

}  // namespace temper::pathfence
