static inline void log_value(uint value) { printf("value %u\n", value); }
