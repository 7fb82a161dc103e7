import type { Transport } from '../transport.ts';
import { type UpdateListener, watchUpdates } from '../updates.ts';

/** What changes, as it happens. */
export function updateCalls(transport: Transport) {
  return {
    /**
     * Tells `listener` until the result is called; connects again by itself. In browsers the session says who
     * listens: their WebSocket takes no key.
     */
    watch: (listener: UpdateListener) =>
      watchUpdates(transport.url('GET /api/updates', {}), { headers: transport.credentials, listener }),
  };
}
