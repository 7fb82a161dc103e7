/** A webhook's secret, as it lies in its row. */
import type { Sealer } from '../platform/sealer.ts';

/** Part of the format: the rotation of the master key uses the same (metadata/sealed-columns-store.ts). */
function contextOf(webhookId: string): string {
  return `webhook-secret:${webhookId}`;
}

export function sealSecret(sealer: Sealer, webhookId: string, secret: string): Uint8Array {
  return sealer.seal(Buffer.from(secret), contextOf(webhookId));
}

/** Throws `data_corrupted` when it does not open. */
export function openSecret(sealer: Sealer, webhookId: string, sealed: Uint8Array): string {
  return sealer.unseal(sealed, contextOf(webhookId)).toString();
}
