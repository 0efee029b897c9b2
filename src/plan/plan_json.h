// A plan as JSON: the parts that `hutch plan --json` and the golden files of tests share.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hutch::plan {

boost::json::array strings_json(const std::vector<std::string>& strings);
// Keys sorted.
boost::json::object plan_object(const Plan& plan);
// Two spaces of indent, one element of a list a line, and a line end.
std::string print_lines(const boost::json::value& value);

}  // namespace hutch::plan
