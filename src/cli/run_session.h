// One `hutch run` under way: finds a server or makes one, sends the run, shows its output as it
// comes, keeps its files, and sees to it that nothing is left. Owns the order of these; what a
// person typed is understood elsewhere.
#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/client_settings.h"
#include "cli/command_line.h"
#include "cli/event_stream.h"
#include "cli/http_client.h"
#include "cli/private_server.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "cli/run_output.h"
#include "cli/run_request.h"
#include "cli/stop_signals.h"

namespace hutch::cli {

struct RunPlan {
  RunRequest request;
  ClientSettings client;
  // What a server of our own would be like. Taken when nobody answers at the default address.
  config::Config config;
  bool local = false;  // take it without asking
  std::string out;     // a directory for the files that come back; empty for none
  bool json = false;   // the answer as one JSON object, instead of its streams
  bool quiet = false;  // no progress and no summary
};

class RunSession {
 public:
  // What is referred to must outlive it.
  RunSession(const RunPlan& plan, Serve serve, const Clock& clock, const StopSignals& signals);

  // From the first connection to the last trace. The command's exit code; what there is to say has
  // been said on standard error.
  int run();

 private:
  Result<int> attempt();
  Status open_server();
  Status start_private();
  HttpClientOptions client_options();
  void tick();
  Result<int> take_answer();
  Result<int> refused(const HttpAnswer& answer);
  Status take_event(const ServerEvent& event);
  Status take_output(RunOutput& output, const boost::json::object& event);
  Status take_whole(std::string body);
  void take_file(const boost::json::object& file);
  Result<int> conclude();
  void tell_omitted() const;
  void tell_files() const;
  void tell_waived() const;
  int end_of(const Error& error, const std::string& last_words);
  void say(const std::string& sentence);

  const RunPlan& plan_;
  Serve serve_;
  const Clock& clock_;
  const StopSignals& signals_;
  RunOutput out_;
  RunOutput err_;
  Progress progress_;
  std::optional<RunFiles> files_;
  std::optional<PrivateServer> private_;
  std::optional<HttpClient> client_;
  std::optional<boost::json::object> end_;  // the answer without its streams, once it is there
  std::vector<std::string> not_kept_;       // files that came back with no place to go
  bool file_failed_ = false;
};

}  // namespace hutch::cli
