/** Signatures of Standard Webhooks 1.0: HMAC-SHA256 over `id.timestamp.body`, with a secret per webhook. */
import { createHmac } from 'node:crypto';
import { randomSecret } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';

const SECRET_BYTES = 32;
const PREFIX = 'whsec_';

interface SignedMessage {
  readonly id: string;
  /** Time of the attempt, whole seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** `whsec_` and the base64 of 32 random bytes. */
export function newWebhookSecret(): string {
  return PREFIX + randomSecret(SECRET_BYTES).toString('base64');
}

/** The headers `webhook-*`, with one signature per secret (in the form `whsec_…`), the current one first. */
export function signedHeaders(message: SignedMessage, secrets: readonly string[]): Record<string, string> {
  const { id, timestamp, body } = message;
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

/** Part of the format: master key rotation uses the same one (metadata/secrets/sealed-columns-store.ts). */
function contextOf(webhookId: string): string {
  return `webhook-secret:${webhookId}`;
}

export function sealSecret(sealer: Sealer, webhookId: string, secret: string): Uint8Array {
  return sealer.seal(Buffer.from(secret), contextOf(webhookId));
}

/** Throws `data_corrupted` if it cannot be unsealed. */
export function openSecret(sealer: Sealer, webhookId: string, sealed: Uint8Array): string {
  return sealer.unseal(sealed, contextOf(webhookId)).toString();
}
