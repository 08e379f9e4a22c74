import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Browser tests load models and count what is asked for: one file at a time keeps them apart.
    fileParallelism: false,
  },
});
