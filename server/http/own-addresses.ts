/**
 * Where callers reach this cloud: at the addresses that the settings name, else at the host that their own
 * request names, so that who calls from another machine gets links that lead back here.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { FastifyRequest } from 'fastify';

/** Of the API and of the data origin, each `http://host:port` without a slash at the end, or empty. */
export interface Addresses {
  readonly apiUrl: string;
  readonly dataUrl: string;
}

/** A name or an address, and a port: nothing that ends the host of a URL, or a rule of a page's policy. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;

export class OwnAddresses implements Addresses {
  readonly #set: Addresses;
  #listening: Addresses = { apiUrl: '', dataUrl: '' };
  readonly #called = new AsyncLocalStorage<Addresses>();

  /** `set`: by the settings; empty where they name none. */
  constructor(set: Addresses) {
    this.#set = set;
  }

  /** Where the servers listen: for who names no host, such as the operator's commands. */
  listenAt(listening: Addresses): void {
    this.#listening = listening;
  }

  get apiUrl(): string {
    return this.#set.apiUrl || this.#called.getStore()?.apiUrl || this.#listening.apiUrl;
  }

  get dataUrl(): string {
    return this.#set.dataUrl || this.#called.getStore()?.dataUrl || this.#listening.dataUrl;
  }

  /** Answers a request to `origin`: whatever that begins sees the addresses by which we were called. */
  answer<T>(origin: keyof Addresses, request: FastifyRequest, work: () => T): T {
    // What a trusted proxy forwards is in host and protocol already; of others Fastify takes none of it.
    const { host, protocol } = request;
    const [, name] = HOST.exec(host ?? '') ?? [];
    if (name === undefined) return work();
    const called = {
      ...this.#beside(origin, name),
      [origin]: `${protocol === 'https' ? 'https' : 'http'}://${host}`,
    };
    return this.#called.run(called, work);
  }

  /** The other origin has the same host, unless the settings say where the called one is. */
  #beside(origin: keyof Addresses, name: string): Addresses {
    if (this.#set[origin] !== '') return this.#listening;
    const atName = (url: string) => url.replace(/^http:\/\/.*(:\d+)$/, (_, port) => `http://${name}${port}`);
    return { apiUrl: atName(this.#listening.apiUrl), dataUrl: atName(this.#listening.dataUrl) };
  }
}
