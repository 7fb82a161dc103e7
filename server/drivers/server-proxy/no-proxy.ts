/** Replaces ServerProxy when users may not connect: it does not listen. */
import type { ListenerFigures, ServerProxy } from './server-proxy.ts';

type Offered = 'open' | 'shut' | 'lead' | 'refuse' | 'endConnections' | 'figures' | 'close';

export class NoProxy implements Pick<ServerProxy, Offered> {
  async open(): Promise<void> {}

  async shut(): Promise<void> {}

  async lead(): Promise<void> {}

  refuse(): void {}

  endConnections(): void {}

  async figures(): Promise<ListenerFigures> {
    return { open: 0, waiting: 0, accepted: 0 };
  }

  async close(): Promise<void> {}
}
