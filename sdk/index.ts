/**
 * The cloud as an object: `cloud.buckets.list()`, `cloud.vms.start(id)`. Every call of openapi.json has a
 * method, which takes ids first, then a body or query in the API's own names, and CallOptions last. Refusals
 * reject with CloudError. Nothing is tried again by itself: `retryAfterSeconds` says when, and an
 * `idempotencyKey` makes it safe. It needs fetch and nothing else.
 */
import { accountCalls } from './resources/account.ts';
import { adminCalls } from './resources/admin.ts';
import { billingCalls } from './resources/billing.ts';
import { databaseCalls } from './resources/databases.ts';
import { recoveryCalls } from './resources/recovery.ts';
import { storageCalls } from './resources/storage.ts';
import { systemCalls } from './resources/system.ts';
import { updateCalls } from './resources/updates.ts';
import { vmCalls } from './resources/vms.ts';
import { webhookCalls } from './resources/webhooks.ts';
import { type CloudOptions, Transport } from './transport.ts';

export type * from '../build/sdk/schema.d.ts';
export { CloudError, type ErrorCode } from './problem.ts';
export type {
  CallName,
  CallOptions,
  CloudOptions,
  Input,
  Page,
  Pages,
  Result,
  UploadOptions,
} from './transport.ts';
export type { ChangedThing, UpdateListener } from './updates.ts';

export type Cloud = ReturnType<typeof createCloud>;

/** A client; in a page of the cloud itself no option is needed. */
export function createCloud(options: CloudOptions = {}) {
  const transport = new Transport(options);
  return {
    account: accountCalls(transport),
    ...storageCalls(transport),
    ...vmCalls(transport),
    ...databaseCalls(transport),
    recovery: recoveryCalls(transport),
    billing: billingCalls(transport),
    webhooks: webhookCalls(transport),
    system: systemCalls(transport),
    updates: updateCalls(transport),
    admin: adminCalls(transport),
  };
}
