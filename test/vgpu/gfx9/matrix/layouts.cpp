#include "test/vgpu/gfx9/matrix/layouts.hpp"

#include <charconv>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "gfx9/decode/encoding.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

unsigned number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  unsigned value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error("not a number: " + std::string(text));
  return value;
}

template <class Value>
Value one_of(const std::map<std::string, Value>& values, const std::string& name) {
  const auto found = values.find(name);
  if (found == values.end()) throw std::runtime_error("unknown name: " + name);
  return found->second;
}

Target target(const std::string& name) {
  return one_of<Target>(
      {{"gfx908", Target::gfx908}, {"gfx90a", Target::gfx90a}, {"gfx942", Target::gfx942}}, name);
}

Element element(const std::string& name) {
  return one_of<Element>({{"f64", Element::f64},
                          {"f32", Element::f32},
                          {"xf32", Element::xf32},
                          {"i32", Element::i32},
                          {"f16", Element::f16},
                          {"bf16", Element::bf16},
                          {"i8", Element::i8},
                          {"fp8", Element::fp8},
                          {"bf8", Element::bf8}},
                         name);
}

// "r1+l32", "b16", "0"
Place place(std::string_view text) {
  Place result;
  if (text == "0") return result;
  for (const std::string& part : split(text, '+')) {
    unsigned& field = *one_of<unsigned*>(
        {{"r", &result.reg}, {"l", &result.lane}, {"b", &result.bit}}, part.substr(0, 1));
    field = number(std::string_view(part).substr(1));
  }
  return result;
}

// The "name=value" words after the first `skip` ones.
std::map<std::string, std::string> fields(const std::vector<std::string>& words, size_t skip) {
  std::map<std::string, std::string> result;
  for (size_t i = skip; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    if (equals == std::string::npos ||
        !result.emplace(words[i].substr(0, equals), words[i].substr(equals + 1)).second)
      throw std::runtime_error("not understood: " + words[i]);
  }
  return result;
}

// The value of a required field of the line.
const std::string& value(const std::map<std::string, std::string>& all, const std::string& name) {
  const auto found = all.find(name);
  if (found == all.end()) throw std::runtime_error("missing: " + name);
  return found->second;
}

MatrixInstruction instruction(const std::vector<std::string>& words) {
  const auto all = fields(words, 3);
  MatrixInstruction result;
  result.name = words[2];
  result.m = number(value(all, "m"));
  result.n = number(value(all, "n"));
  result.k = number(value(all, "k"));
  result.blocks = number(value(all, "blocks"));
  const auto in = split(value(all, "in"), ',');
  if (in.size() != 2) throw std::runtime_error("the types of A and B");
  result.a_type = element(in[0]);
  result.b_type = element(in[1]);
  result.sparse = number(value(all, "sparse")) != 0;
  result.out = element(value(all, "out"));
  const auto registers = split(value(all, "registers"), ','),
             files = split(value(all, "files"), ',');
  if (registers.size() != 4 || files.size() != 3)
    throw std::runtime_error("four registers and three files");
  for (unsigned i = 0; i < 4; ++i) result.registers[i] = number(registers[i]);
  for (unsigned i = 0; i < 3; ++i) result.files[i] = files[i];
  return result;
}

struct Axis {
  const char* name;
  unsigned size;
};

Layout layout(const std::vector<std::string>& words, const std::array<Axis, 3>& axes) {
  auto all = fields(words, 3);
  Layout result;
  result.start = place(value(all, "start"));
  all.erase("start");
  for (const auto& [name, field] :
       {std::pair{"cbsz", &result.cbsz}, {"abid", &result.abid}, {"blgp", &result.blgp}}) {
    if (const auto found = all.find(name); found != all.end()) {
      *field = number(found->second);
      all.erase(found);
    }
  }
  if (const auto found = all.find("neg"); found != all.end()) {
    result.negated = number(found->second) != 0;
    all.erase(found);
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (const auto found = all.find(axes[axis].name); found != all.end()) {
      for (const std::string& step : split(found->second, ','))
        result.steps[axis].push_back(place(step));
      all.erase(found);
    }
    if (axes[axis].size != 1u << result.steps[axis].size())
      throw std::runtime_error(std::string("steps do not fit the size of ") + axes[axis].name);
  }
  if (!all.empty()) throw std::runtime_error("unknown field: " + all.begin()->first);
  return result;
}

}  // namespace

unsigned width_bits(Element element) noexcept {
  switch (element) {
    case Element::f64:
      return 64;
    case Element::f32:
    case Element::xf32:
    case Element::i32:
      return 32;
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::i8:
    case Element::fp8:
    case Element::bf8:
      break;
  }
  return 8;
}

Place Layout::at(unsigned block, unsigned row, unsigned column) const noexcept {
  Place result = start;
  const std::array<unsigned, 3> coordinates = {block, row, column};
  for (unsigned axis = 0; axis < 3; ++axis) {
    for (unsigned bit = 0; bit < steps[axis].size(); ++bit) {
      if ((coordinates[axis] >> bit & 1) == 0) continue;
      result.reg += steps[axis][bit].reg;
      result.lane += steps[axis][bit].lane;
      result.bit += steps[axis][bit].bit;
    }
  }
  result.lane %= 64;
  return result;
}

uint64_t entry_bits(const std::vector<Vgpr>& registers, unsigned first, Element element,
                    Place place) {
  const Vgpr* const reg = &registers[first + place.reg];
  const uint64_t low = reg[0].lane[place.lane];
  const unsigned width = width_bits(element);
  if (width == 64) return low | static_cast<uint64_t>(reg[1].lane[place.lane]) << 32;
  return low >> place.bit & ((uint64_t{1} << width) - 1);
}

std::string name(Target target) {
  return target == Target::gfx908 ? "gfx908" : target == Target::gfx90a ? "gfx90a" : "gfx942";
}

std::array<uint32_t, 2> encode(const MatrixInstruction& what, Files files, unsigned cbsz,
                               unsigned abid, unsigned blgp) {
  for (const Encoding& e : encodings()) {
    if (mnemonic(e.opcode) != what.name ||
        (e.targets >> static_cast<unsigned>(what.target) & 1) == 0)
      continue;
    const bool names_cd = what.target != Target::gfx908 && files.cd != 0;
    return {0xd0000000u | uint32_t{e.number} << 16 | uint32_t{names_cd} << 15 | abid << 11 |
                cbsz << 8 | kD,
            blgp << 29 | files.b << 28 | files.a << 27 | (kFirstVgpr + kC) << 18 |
                (kFirstVgpr + kB) << 9 | (kFirstVgpr + kA)};
  }
  throw std::runtime_error(what.name + " has no encoding for " + name(what.target));
}

std::vector<MatrixInstruction> read_layouts() {
  std::ifstream file(UPTEMPO_MATRIX_LAYOUTS);
  if (!file) throw std::runtime_error("cannot read " UPTEMPO_MATRIX_LAYOUTS);
  std::vector<MatrixInstruction> result;
  std::map<std::pair<Target, std::string>, size_t> index;
  unsigned line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    if (line.starts_with('#')) continue;
    try {
      const std::vector<std::string> words = split(line, ' ');
      if (words.size() < 4) throw std::runtime_error("too short");
      for (const std::string& each : split(words[0], ',')) {
        const auto key = std::pair{target(each), words[2]};
        if (words[1] == "instruction") {
          if (!index.emplace(key, result.size()).second) throw std::runtime_error("listed twice");
          result.push_back(instruction(words));
          result.back().target = key.first;
          continue;
        }
        if (!index.contains(key)) throw std::runtime_error("before its instruction");
        MatrixInstruction& of = result[index[key]];
        const Axis block = {"block", of.blocks}, i = {"i", of.m}, j = {"j", of.n}, k = {"k", of.k};
        if (words[1] == "K") {
          of.indices.push_back(layout(words, {block, i, k}));
        } else if (words[1] == "A") {
          of.a.push_back(layout(words, {block, i, k}));
        } else if (words[1] == "B") {
          of.b.push_back(layout(words, {block, k, j}));
        } else if (words[1] == "C") {
          of.c.push_back(layout(words, {block, i, j}));
        } else if (words[1] == "D") {
          of.d.push_back(layout(words, {block, i, j}));
        } else {
          throw std::runtime_error("unknown kind of line: " + words[1]);
        }
      }
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(UPTEMPO_MATRIX_LAYOUTS ":" + std::to_string(line_number) + ": " +
                               error.what());
    }
  }
  for (const MatrixInstruction& each : result) {
    const bool negates = each.c.size() > 1;
    const bool sums = each.sparse ? each.c.empty() && !each.indices.empty()
                      : negates   ? each.c.size() == 8 && each.a.size() == 8 && each.b.size() == 8
                                  : each.c.size() == 1 && each.indices.empty();
    if (each.a.empty() || each.b.empty() || !sums || each.d.size() != 1)
      throw std::runtime_error(UPTEMPO_MATRIX_LAYOUTS ": " + each.name +
                               " lacks a matrix, or has one too often");
  }
  return result;
}

}  // namespace uptempo::vgpu::gfx9::test
