import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** URL of a running cloud for `npm run dev`. */
const CLOUD = 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react()],
  // The server inserts its own nonce into every response.
  html: { cspNonce: 'CSP_NONCE' },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    // Inlined files would need `data:` in the policy.
    assetsInlineLimit: 0,
    // One file: Vite loads the styles of a part only once, even if that failed and the part is
    // loaded again.
    cssCodeSplit: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        // Shared code is in one file: browsers fetch six at a time, and each costs a round trip.
        codeSplitting: { groups: [{ name: 'shared', minShareCount: 10 }] },
      },
    },
  },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      // WebSockets are only accepted from pages of the cloud's own origin.
      '/api': { target: CLOUD, changeOrigin: true, ws: true, rewriteWsOrigin: true },
      '/setup': { target: CLOUD, changeOrigin: true },
      '/assets/scalar-': { target: CLOUD, changeOrigin: true },
    },
  },
});
