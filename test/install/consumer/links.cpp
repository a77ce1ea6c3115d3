// Nothing but a program: that it links shows that a component's own dependencies are found.
int main() {}
