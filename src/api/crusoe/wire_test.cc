#include "api/crusoe/wire.h"

#include <gtest/gtest.h>

#include <string>

namespace hutch::api::crusoe {
namespace {

using namespace std::string_literals;

const ServedImage kImage{.name = "python", .digest = std::string(64, 'a')};

// The sentence that the caller reads; "ok" when the body is fine.
std::string verdict(const std::string& body) {
  const auto request = decode_execute(body, kImage);
  if (request) return "ok";
  EXPECT_EQ(request.error().code, ErrorCode::bad_request);
  return request.error().message;
}

TEST(ExecuteRequest, HasDefaults) {
  const auto request = decode_execute(R"({"code":"pass"})", kImage);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->code, "pass");
  EXPECT_EQ(request->timeout_s, 20U);
  EXPECT_TRUE(request->files.empty());
  EXPECT_FALSE(request->report);
}

TEST(ExecuteRequest, ReadsEveryField) {
  const auto request = decode_execute(
      R"({"code":"a\u0000b","language":"python","timeout_s":60,"report":true,)"
      R"("files":[{"path":"d/\u00e9","content_b64":"AP/7"},{"path":"e","content_b64":""}],)"
      R"("args":["-x","","a b\u00e9"],"image":"python"})",
      kImage);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->code, "a\0b"s);
  EXPECT_EQ(request->timeout_s, 60U);
  EXPECT_TRUE(request->report);
  EXPECT_EQ(request->args, (std::vector<std::string>{"-x", "", "a b\xC3\xA9"}));
  ASSERT_EQ(request->files.size(), 2U);
  EXPECT_EQ(request->files[0].path, "d/\xC3\xA9");
  EXPECT_EQ(request->files[0].bytes, "\x00\xFF\xFB"s);
  EXPECT_EQ(request->files[1].bytes, "");
}

TEST(ExecuteRequest, TakesZeroAndNullAsAbsentWhereAFieldIsOptional) {
  const auto request = decode_execute(
      R"({"code":"x","timeout_s":0,"language":null,"files":null,"report":null,"args":null,)"
      R"("image":null,"more":[{}]})",
      kImage);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->timeout_s, 20U);
  EXPECT_EQ(verdict(R"({"code":"x","timeout_s":null})"), "ok");
  EXPECT_EQ(verdict(R"({"code":"x","timeout_s":-0})"), "ok");
}

TEST(ExecuteRequest, TakesArgumentsUpToTheirLimits) {
  const auto with = [](const std::string& args) {
    return verdict(R"({"code":"x","args":)" + args + "}");
  };
  const std::string wrong = "args must be an array of strings";
  for (const char* args : {"\"a\"", "{}", "1", "true", "[1]", "[\"a\",null]", "[[\"a\"]]"}) {
    EXPECT_EQ(with(args), wrong) << args;
  }
  EXPECT_EQ(with("[]"), "ok");
  EXPECT_EQ(with(R"(["a","b\u0000c"])"), "args[1] must not contain NUL");
  std::string many = "[\"\"";
  for (int i = 1; i < 1024; ++i) many += ",\"\"";
  EXPECT_EQ(with(many + "]"), "ok");
  EXPECT_EQ(with(many + ",\"\"]"), "args must be at most 1024 strings");
  const std::string half = "\"" + std::string(65536, 'a') + "\"";
  EXPECT_EQ(with("[" + half + "," + half + "]"), "ok");
  EXPECT_EQ(with("[" + half + ",\"b\"," + half + "]"), "args must be at most 131072 bytes in all");
}

TEST(ExecuteRequest, TakesTheServedImageByNameAndDigest) {
  const auto with = [](const std::string& image) {
    return verdict(R"({"code":"x","image":)" + image + "}");
  };
  EXPECT_EQ(with("\"python\""), "ok");
  EXPECT_EQ(with("\"" + kImage.digest + "\""), "ok");
  EXPECT_EQ(with("5"), "image must be a string");
  for (const std::string& image : {"ruby"s, ""s, "Python"s, std::string(64, 'b'), "python:3"s}) {
    EXPECT_EQ(with("\"" + image + "\""), "image must be \"python\": this server serves no other");
  }
  EXPECT_EQ(decode_execute(R"({"code":"x","image":""})", {}).error().message,
            "image must be \"python\": this server serves no other");
}

TEST(ExecuteRequest, WantsJson) {
  for (const std::string& body :
       {""s, "x"s, "[]"s, "\"code\""s, "null"s, "{"s, R"({"code":"a"}x)"s,
        R"({"code":"a","code":"b"})"s, R"({"code":"a","x":{"y":1,"y":2}})"s,
        R"({"code":"a","timeout_s":NaN})"s, R"({"code":"a","timeout_s":1e999})"s,
        R"({"code":"\ud800"})"s, "{\"code\":\"\xFF\"}"s, "\xEF\xBB\xBF{\"code\":\"a\"}"s,
        R"({"code":"a"/**/})"s, "{\"code\":" + std::string(200'000, '[')}) {
    EXPECT_EQ(verdict(body), "invalid JSON body") << body.substr(0, 80);
  }
}

TEST(ExecuteRequest, WantsCode) {
  EXPECT_EQ(verdict("{}"), "code is required");
  EXPECT_EQ(verdict(R"({"code":""})"), "code is required");
  EXPECT_EQ(verdict(R"({"Code":"x"})"), "code is required");
  EXPECT_EQ(verdict(R"({"code":null})"), "code must be a string");
  EXPECT_EQ(verdict(R"({"code":5})"), "code must be a string");
  EXPECT_EQ(verdict("{\"code\":" + std::string(400, '9') + "}"), "invalid JSON body")
      << "no double holds it";
  EXPECT_EQ(verdict("{\"code\":" + std::string(300, '9') + "}"), "code must be a string");
}

TEST(ExecuteRequest, NamesTheFieldWhoseTypeIsWrong) {
  const auto with = [](const std::string& member) {
    return verdict(R"({"code":"x",)" + member + "}");
  };
  EXPECT_EQ(with(R"("language":1)"), "language must be a string");
  EXPECT_EQ(with(R"("timeout_s":"5")"), "timeout_s must be an integer");
  EXPECT_EQ(with(R"("timeout_s":true)"), "timeout_s must be an integer");
  EXPECT_EQ(with(R"("timeout_s":1.5)"), "timeout_s must be an integer");
  EXPECT_EQ(with(R"("timeout_s":5.0)"), "timeout_s must be an integer");
  EXPECT_EQ(with(R"("timeout_s":[])"), "timeout_s must be an integer");
  EXPECT_EQ(with(R"("report":1)"), "report must be a boolean");
  EXPECT_EQ(with(R"("files":{"path":"a"})"), "files must be an array");
  EXPECT_EQ(with(R"("files":["a"])"), "files[0] must be an object");
  EXPECT_EQ(with(R"("files":[null])"), "files[0] must be an object");
  EXPECT_EQ(with(R"("files":[{"path":"a","content_b64":""},{"path":1,"content_b64":""}])"),
            "files[1].path must be a string");
  EXPECT_EQ(with(R"("files":[{"path":"a","content_b64":2}])"),
            "files[0].content_b64 must be a string");
  EXPECT_EQ(with(R"("files":[{"path":"a","content_b64":null}])"),
            "files[0].content_b64 must be a string");
  EXPECT_EQ(with(R"("files":[{"content_b64":""}])"), "files[0].path is required");
  EXPECT_EQ(with(R"("files":[{"path":"a"}])"), "files[0].content_b64 is required");
}

TEST(ExecuteRequest, LooksAtTypesBeforeItLooksAtValues) {
  EXPECT_EQ(verdict(R"({"language":"ruby","timeout_s":"x"})"), "timeout_s must be an integer");
  EXPECT_EQ(verdict(R"({"language":"ruby","timeout_s":99})"), "code is required");
  EXPECT_EQ(verdict(R"({"code":"x","language":"ruby","timeout_s":99})"),
            "unsupported language \"ruby\"");
}

TEST(ExecuteRequest, KnowsOneLanguage) {
  EXPECT_EQ(verdict(R"({"code":"x","language":"Python"})"), "unsupported language \"Python\"");
  EXPECT_EQ(verdict(R"({"code":"x","language":""})"), "unsupported language \"\"");
  EXPECT_EQ(verdict(R"({"code":"1","language":"ruby\n\u001b[2J"})"),
            "unsupported language \"ruby\n\x1B[2J\"");
  const std::string long_name =
      verdict(R"({"code":"x","language":")" + std::string(5000, 'a') + "\"}");
  EXPECT_LT(long_name.size(), 300U);
  EXPECT_TRUE(long_name.ends_with("aaa...\""));
}

TEST(ExecuteRequest, HoldsTheTimeoutAtBothEdges) {
  const auto with = [](const std::string& number) {
    return verdict(R"({"code":"x","timeout_s":)" + number + "}");
  };
  EXPECT_EQ(with("1"), "ok");
  EXPECT_EQ(with("60"), "ok");
  for (const char* number :
       {"-1", "61", "2147483648", "4294967297", "-9223372036854775808", "9223372036854775808",
        "18446744073709551617", "-18446744073709551617", "1e300"}) {
    EXPECT_EQ(with(number), "timeout_s must be between 1 and 60") << number;
  }
}

TEST(ExecuteRequest, NamesTheFileThatIsNotBase64) {
  const std::string start = R"({"code":"x","files":[{"path":"a","content_b64":"QQ=="},)"
                            R"({"path":"b","content_b64":")";
  for (const std::string content : {"!!!", "QQ", "QQ=", "QQ==\\n", "ab-_", "QR=="}) {
    EXPECT_EQ(verdict(start + content + "\"}]}"),
              "files[1].content_b64 is not valid base64 (path 'b')")
        << content;
  }
}

TEST(ExecuteAnswer, HasFiveKeysInOrderWhenNothingElseIsThere) {
  ExecuteAnswer answer{.sandbox_id = "sandbox-x7k2p", .stdout_text = "4294967296\n"};
  answer.duration_ms = 38;
  EXPECT_EQ(encode(answer), R"({"sandbox_id":"sandbox-x7k2p","stdout":"4294967296\n","stderr":"",)"
                            R"("exit_code":0,"duration_ms":38})");
}

TEST(ExecuteAnswer, WritesEveryKeyInOrder) {
  ExecuteAnswer answer{.sandbox_id = "s", .stdout_text = "o", .stderr_text = "e", .exit_code = -1};
  answer.files = {{"a", "text/plain", "foo"}, {"b", "image/png", ""}};
  answer.files_omitted = {{"c", 5, "total"}};
  answer.files_omitted_count = 7;
  answer.files_deleted = {"d"};
  answer.end = AnswerEnd{"memory", "SIGKILL", 1, 2, 3};
  answer.stdout_bytes = 4;
  answer.stderr_bytes = 5;
  EXPECT_EQ(encode(answer),
            R"({"sandbox_id":"s","stdout":"o","stderr":"e","exit_code":-1,"duration_ms":0,)"
            R"("files":[{"path":"a","size":3,"type":"text/plain","content_b64":"Zm9v"},)"
            R"({"path":"b","size":0,"type":"image/png","content_b64":""}],)"
            R"("files_omitted":[{"path":"c","size":5,"reason":"total"}],"files_omitted_count":7,)"
            R"("files_deleted":["d"],"end":{"cause":"memory","signal":"SIGKILL",)"
            R"("memory_peak_bytes":1,"cpu_ms":2,"limit":3},"stdout_bytes":4,"stderr_bytes":5})");
}

TEST(PoolAnswer, HasFourNumbers) {
  EXPECT_EQ(encode(PoolAnswer{3, 3, 0, 17}),
            R"({"warm":3,"target":3,"in_flight":0,"created_total":17})");
}

}  // namespace
}  // namespace hutch::api::crusoe
