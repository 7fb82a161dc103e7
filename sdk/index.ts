/**
 * The cloud as an object: `cloud.listBuckets()`, `cloud.startVm(id)`. Every operation of
 * openapi.json is a method named by its operationId, which takes ids first, then the body and the
 * query in the API's own names, and CallOptions last. Errors of the cloud reject with CloudError.
 * Nothing is retried automatically: `retryAfterSeconds` says when to retry, and an `idempotencyKey`
 * makes that safe. Its only requirement is fetch.
 */
import { OPERATIONS } from '../build/sdk/operations.ts';
import type { Empty, LoggedIn, Methods, Ticket } from '../build/sdk/schema.d.ts';
import { type CloudOptions, type OperationName, Transport } from './transport.ts';
import type { CallOptions } from './types.ts';
import { type UpdateListener, watchUpdates } from './updates.ts';

export { OPERATIONS } from '../build/sdk/operations.ts';
export type * from '../build/sdk/schema.d.ts';
export { CloudError, type ErrorCode } from './problem.ts';
export { pageSession, type SessionToken } from './session.ts';
export {
  type CallShape,
  type CloudOptions,
  type OperationName,
  paramsOf,
  type Result,
} from './transport.ts';
export type { CallOptions, Page, Pages, UploadOptions } from './types.ts';
export type { ChangedThing, UpdateListener } from './updates.ts';

export interface Cloud extends Methods {
  /** The items of getUsage() as a table (RFC 4180). */
  getUsageCsv(query?: { from?: string; to?: string }, options?: CallOptions): Promise<string>;
  /**
   * Notifies `listener` of changes until the result is called; reconnects automatically. In
   * browsers the session identifies the listener: their WebSocket cannot send a key.
   */
  watchUpdates(listener: UpdateListener): () => void;
  /** URL of an operation, for clients that send a key. `params`: the path parameters, in order. */
  urlOf(
    operation: OperationName,
    params?: readonly (string | number)[],
    query?: Readonly<Record<string, unknown>>,
  ): string;
  /** The same with a ticket, for a download or a WebSocket that a browser opens within a minute. */
  ticketUrl(
    operation: OperationName,
    params?: readonly (string | number)[],
    query?: Readonly<Record<string, unknown>>,
  ): Promise<string>;
}

/** A client; in a page of the cloud itself no option is needed. */
export function createCloud(options: CloudOptions = {}): Cloud {
  const transport = new Transport(options);
  const methods = Object.entries(OPERATIONS).map(([name, operation]) => [
    name,
    (...args: unknown[]) => transport.call(operation, args),
  ]);
  const urlOf: Cloud['urlOf'] = (operation, params = [], query = {}) =>
    transport.url(OPERATIONS[operation], params, query);
  const ticketUrl: Cloud['ticketUrl'] = async (...of) => {
    const url = urlOf(...of);
    const path = options.baseUrl === undefined ? url : url.slice(url.indexOf('/api/'));
    const ticket = (await transport.call(OPERATIONS.createTicket, [{ path }])) as Ticket;
    return url.slice(0, url.length - path.length) + ticket.url;
  };
  const usage = { ...OPERATIONS.getUsage, gives: 'text' } as const;
  return {
    ...(Object.fromEntries(methods) as Methods),
    getUsageCsv: (query = {}, rest = {}) =>
      transport.call(usage, [query, { ...rest, accept: 'text/csv' }]) as Promise<string>,
    login: async (...args) => {
      const account = (await transport.call(OPERATIONS.login, args)) as LoggedIn;
      transport.signedIn(account.session_token);
      return account;
    },
    logout: async (...args) => {
      const answer = (await transport.call(OPERATIONS.logout, args)) as Empty;
      transport.signedIn(undefined);
      return answer;
    },
    watchUpdates: (listener) =>
      watchUpdates({
        // Only programs have a key, and only their WebSockets accept headers.
        address: async () => (transport.hasKey ? urlOf('watchUpdates') : ticketUrl('watchUpdates')),
        headers: transport.hasKey ? transport.credentials : {},
        listener,
      }),
    urlOf,
    ticketUrl,
  };
}
