#include "cli/man.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hutch::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(ManText, PrintsWhatRoffWouldTakeForItsOwn) {
  EXPECT_EQ(man_text(".hidden\n'quoted\nplain."), "\\&.hidden\n\\&\\(aqquoted\nplain.");
  EXPECT_EQ(man_text("a\\b --c ~ ^"), "a\\eb \\-\\-c \\(ti \\(ha");
}

TEST(ManText, MakesWordsInBackticksBold) {
  EXPECT_EQ(man_text("`hutch run` or `-`, not `"), "\\fBhutch run\\fR or \\fB\\-\\fR, not \\(ga");
}

class ManPages : public testing::Test {
 protected:
  ManPages() {
    app_.footer("Start here");
    CLI::App* image = app_.add_subcommand("image", "Build images");
    CLI::App* build = image->add_subcommand("build", "Build one");
    build->add_option("name", name_, "Which one")->required();
    build->add_option("--recipe", name_, "Where it is described")->option_text("DIR");
    app_.add_subcommand("secret", "Not for people")->group("");
  }
  const ManPage& page(const std::string& name) {
    for (const ManPage& one : pages_) {
      if (one.name == name) return one;
    }
    ADD_FAILURE() << "no page " << name;
    return pages_.front();
  }

  std::string name_;
  CLI::App app_{"About", "hutch"};
  std::vector<ManPage> pages_;
};

TEST_F(ManPages, AreOneForEachCommandThatIsShown) {
  pages_ = man_pages(app_);
  std::vector<std::string> names;
  for (const ManPage& one : pages_) names.push_back(one.name);
  EXPECT_THAT(names, ElementsAre("hutch.1", "hutch-image.1", "hutch-config.5"));
  EXPECT_THAT(page("hutch.1").text, Not(HasSubstr("secret")));
}

TEST_F(ManPages, SayWhatACommandTakes) {
  pages_ = man_pages(app_);
  const std::string& text = page("hutch-image.1").text;
  EXPECT_THAT(text, HasSubstr("hutch\\-image \\- Build images\n"));
  EXPECT_THAT(text, HasSubstr("\\fBhutch image build\\fR [\\fIoptions\\fR] \\fIname\\fR\n"));
  EXPECT_THAT(text, HasSubstr("\\fB\\-\\-recipe\\fR \\fIDIR\\fR\nWhere it is described\n"));
  EXPECT_THAT(text, HasSubstr("\\fBhutch\\-config\\fR(5)"));
}

TEST_F(ManPages, ListEverySetting) {
  pages_ = man_pages(app_);
  const std::string& text = page("hutch-config.5").text;
  EXPECT_THAT(text, HasSubstr("\\fBlimits.memory_bytes\\fR\n"));
  EXPECT_THAT(text, HasSubstr("Is a size, 64MiB to 1TiB; by default"));
  EXPECT_THAT(text, HasSubstr(".SS [pool]\n"));
}

}  // namespace
}  // namespace hutch::cli
