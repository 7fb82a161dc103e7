/** Ends Cloudlet between two steps, from the view of its stores. For tests of crash points. */
import type { Metadata } from '../metadata/metadata.ts';

export class Killed extends Error {}

/** Ends the process at the `left`th step: no later call has any effect. */
export class Fuse {
  left = Number.POSITIVE_INFINITY;

  get isBurnt(): boolean {
    return this.left <= 0;
  }

  metadata(inner: Metadata): Metadata {
    return {
      get: (sql, ...params) => this.#reading(() => inner.get(sql, ...params)),
      all: (sql, ...params) => this.#reading(() => inner.all(sql, ...params)),
      commit: (statements) => this.#around(() => inner.commit(statements)),
      snapshot: inner.snapshot.bind(inner),
      close: () => inner.close(),
    };
  }

  /** Wraps `inner`: each call of these methods has a step before its effect and one after it. */
  calls<T extends object>(inner: T, methods: readonly (keyof T)[]): T {
    return new Proxy(inner, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        const call = value.bind(target);
        if (!methods.includes(name as keyof T)) return call;
        return (...args: unknown[]) => this.#around(() => call(...args));
      },
    });
  }

  async #around<T>(call: () => Promise<T>): Promise<T> {
    this.#step();
    const result = await call();
    this.#step();
    return result;
  }

  #reading<T>(call: () => T): T {
    if (this.isBurnt) throw new Killed();
    return call();
  }

  #step(): void {
    if (this.left <= 0) throw new Killed();
    this.left--;
    if (this.left <= 0) throw new Killed();
  }
}
