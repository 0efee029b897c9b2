// Precompiled for the rooms that speak HTTP; sources still include what they use.
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <string>
#include <vector>
