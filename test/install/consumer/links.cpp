// An empty program: it links only if a component's own dependencies are found.
int main() {}
