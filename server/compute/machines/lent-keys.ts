/**
 * SSH keys lent to machines: a guest asks for them over its private network at each login, so a key
 * opens a machine that was created without it, and expires by itself. They are kept in memory:
 * after a restart of Cloudlet a client lends again.
 */
import { createHash } from 'node:crypto';
import { type Call, credentialOf, type Principal } from '../../calls/principal.ts';
import type { Changes } from '../../metadata/change.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { EventAllowance } from '../../resources/event-allowance.ts';
import { type Announce, eventOf } from '../../resources/row-change.ts';
import type { LentKey } from '../schema.ts';
import type { VmEventType } from './lifecycle.ts';
import type { Machines } from './machines.ts';
import { sshKeyProblem } from './vm-fields.ts';

export interface LentKeysDeps {
  readonly clock: Clock;
  readonly changes: Changes;
  readonly announce: Announce<VmEventType>;
  readonly find: Machines['findFor'];
  /** False once the caller's key or session has ended, or the account is suspended or closed. */
  readonly isCurrent: (principal: Principal) => Awaitable<boolean>;
}

/** OpenSSH waits this long for a login. */
const LENT_MS = 120_000;
const MAX_PER_VM = 10;
const MAX_PER_ACCOUNT = 100;
/** Burst of events per account: several callers may lend the same key in turn. */
const MAX_EVENTS = 200;

interface Lent {
  readonly vmId: string;
  /** Type and key, without a comment. */
  readonly line: string;
  readonly principal: Principal;
  /** Monotonic, ms. */
  readonly until: number;
  /** The event is stored; the key is not accepted earlier. */
  readonly isWritten: boolean;
}

const ofVm = (id: string) => (key: Lent) => key.vmId === id;
const withoutComment = (line: string) =>
  line
    .trim()
    .split(/[ \t]+/, 2)
    .join(' ');

export class LentKeys {
  readonly #deps: LentKeysDeps;
  /** Lent keys by account, most recent last. */
  readonly #lent = new Map<number, readonly Lent[]>();
  readonly #allowance: EventAllowance;

  constructor(deps: LentKeysDeps) {
    this.#deps = deps;
    this.#allowance = new EventAllowance(deps.clock, MAX_EVENTS);
  }

  /**
   * Lends the key; the time of a lent key starts again. A key that the machine was created with is
   * not lent. Throws `invalid_request`, `vm_not_found`, and `overloaded` if too many are lent.
   */
  async lend(call: Call, vmId: string, publicKey: string): Promise<LentKey> {
    const { clock, changes, announce, find } = this.#deps;
    const { principal } = call;
    const row = await find(principal, vmId);
    const problem = sshKeyProblem(publicKey);
    if (problem !== undefined) throw invalidField('public_key', problem);
    const line = withoutComment(publicKey);
    const fingerprint = fingerprintOf(line);
    const made = (JSON.parse(row.ssh_keys) as string[]).map(withoutComment);
    if (made.includes(line)) return { fingerprint, expires_at: null };
    const accountId = row.account_id;
    const until = clock.monotonic() + LENT_MS;
    const expires_at = formatTime(clock.now() + LENT_MS);
    const credential = credentialOf(principal);
    const known = this.#of(accountId).find((key) => key.vmId === vmId && key.line === line);
    const isWritten = known?.isWritten === true && credentialOf(known.principal) === credential;
    const key = { vmId, line, principal, until };
    if (!isWritten) this.#assertMayWrite(accountId);
    this.#put(accountId, { ...key, isWritten });
    // The same caller with the same key reuses the loan, so that a loop stores nothing.
    if (isWritten) return { fingerprint, expires_at };
    const facts = { at: clock.now(), vm_id: vmId, fingerprint, credential_id: credential, expires_at };
    const lent = await changes.run(call, (change) => {
      change.addAll(announce(eventOf('vm.ssh_key_lent', row, facts)));
      return { fingerprint, expires_at };
    });
    this.#put(accountId, { ...key, isWritten: true });
    return lent;
  }

  /** The keys that open the account's machine now. */
  async of(accountId: number, vmId: string): Promise<string[]> {
    const keys = this.#of(accountId).filter(ofVm(vmId));
    const areGood = await Promise.all(
      keys.map(async ({ isWritten, principal }) => isWritten && (await this.#deps.isCurrent(principal))),
    );
    return keys.flatMap(({ line }, at) => (areGood[at] ? [line] : []));
  }

  #assertMayWrite(accountId: number): void {
    this.#allowance.forget();
    if (this.#allowance.take(accountId)) return;
    const detail = 'This account lends SSH keys to its machines too often, or with too many credentials';
    throw new AppError('overloaded', detail, { hint: 'Try again in a few seconds' });
  }

  #of(accountId: number): readonly Lent[] {
    const now = this.#deps.clock.monotonic();
    return (this.#lent.get(accountId) ?? []).filter(({ until }) => until > now);
  }

  #put(accountId: number, key: Lent): void {
    const others = this.#of(accountId).filter(({ vmId, line }) => vmId !== key.vmId || line !== key.line);
    if (others.length >= MAX_PER_ACCOUNT || others.filter(ofVm(key.vmId)).length >= MAX_PER_VM) {
      const detail = `At most ${MAX_PER_VM} SSH keys can be lent to a machine at a time, ${MAX_PER_ACCOUNT} to all machines of an account`;
      throw new AppError('overloaded', detail, { hint: 'Lent keys expire after two minutes' });
    }
    this.#lent.delete(accountId);
    this.#lent.set(accountId, [...others, key]);
    const now = this.#deps.clock.monotonic();
    for (const [id, keys] of this.#lent) {
      if (keys.some((one) => one.until > now)) return;
      this.#lent.delete(id);
    }
  }
}

/** The format of `ssh-keygen -l`. */
export function fingerprintOf(line: string): string {
  const bytes = Buffer.from(line.split(/[ \t]+/)[1] ?? '', 'base64');
  return `SHA256:${createHash('sha256').update(bytes).digest('base64').replace(/=+$/, '')}`;
}
