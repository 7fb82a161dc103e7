import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

/** Where `npm run dev` finds a cloud that runs. */
const CLOUD = 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react()],
  // The server puts a nonce of its own into every answer.
  html: { cspNonce: 'CSP_NONCE' },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    // Inlined files would need `data:` in the policy.
    assetsInlineLimit: 0,
    // One file: Vite fetches the styles of a part once, also when they did not come and it is tried again.
    cssCodeSplit: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
    rolldownOptions: {
      output: {
        // Shared code comes in one file: browsers fetch six at a time, and each costs a round trip.
        codeSplitting: { groups: [{ name: 'shared', minShareCount: 8 }] },
      },
    },
  },
  server: {
    port: 5173,
    strictPort: true,
    proxy: {
      // WebSockets are only taken from pages of the cloud's own origin.
      '/api': { target: CLOUD, changeOrigin: true, ws: true, rewriteWsOrigin: true },
      '/setup': { target: CLOUD, changeOrigin: true },
      '/assets/scalar-': { target: CLOUD, changeOrigin: true },
    },
  },
});
