// A mistake on purpose: the place comes from the caller, and nothing keeps it inside the table.
//
// IREE writes debug information into a kernel for the operations whose location names a function's
// debug information (DWARF), as a front end for a language would.
#file = #llvm.di_file<"missing_bound.mlir" in "">
#unit = #llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = #file,
    producer = "", isOptimized = true, emissionKind = LineTablesOnly>
#main = #llvm.di_subprogram<id = distinct[1]<>, compileUnit = #unit, scope = #file, name = "main",
    file = #file, line = 11, scopeLine = 11, type = #llvm.di_subroutine_type<>,
    subprogramFlags = "Definition|Optimized">
func.func @main(%table: tensor<?xf32>, %places: tensor<64xi32>) -> tensor<64xf32> {
  %empty = tensor.empty() : tensor<64xf32>
  %found = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%places : tensor<64xi32>) outs(%empty : tensor<64xf32>) {
    ^bb0(%place: i32, %out: f32):
      %index = arith.index_cast %place : i32 to index
      %value = tensor.extract %table[%index] : tensor<?xf32> loc(fused<#main>["missing_bound.mlir":18:16])  // finds: memory out-of-bounds
      linalg.yield %value : f32
  } -> tensor<64xf32> loc(fused<#main>["missing_bound.mlir":13:12])
  return %found : tensor<64xf32>
} loc(fused<#main>["missing_bound.mlir":11:1])
