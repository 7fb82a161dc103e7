/**
 * Invitations: links with which people create their own accounts, on terms that an administrator
 * sets. One link invites one person, or a class, up to a number. Only the hash of its token is
 * stored.
 */
import { ACTORS } from '../../calls/audit.ts';
import type { Call } from '../../calls/principal.ts';
import type { Registration as RegistrationPolicy } from '../../config/registrations.ts';
import type { Answerer, Outbox } from '../../mail/outbox.ts';
import { type Change, type Changes, type Recorder, turnOfAll } from '../../metadata/change.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { type FieldProblem, invalidField } from '../../platform/errors.ts';
import { newId, randomSecret } from '../../platform/ids.ts';
import { registrationClosed } from '../account-errors.ts';
import { assertAccountFields, foldEmail, foldUsername } from '../account-fields.ts';
import { nameOf } from '../account-view.ts';
import type { Accounts } from '../accounts.ts';
import { hashSecret } from '../keys/api-key-text.ts';
import { hasAccountMail, invitationMail } from '../links/link-mails.ts';
import { MOST_AN_HOUR } from '../links/mailed-links.ts';
import type { Registration } from '../schema.ts';
import type { AccountStore } from '../store.ts';
import {
  type CreatedInvitation,
  DEFAULT_LIFE_SECONDS,
  type Invitation,
  type InvitationBody,
  type InvitationFileBody,
  type RenewalBody,
  type ShownInvitation,
} from './invitation-schema.ts';
import { atLine, readInvitationTable, refusal, wantedOf } from './invitation-table.ts';
import {
  assertNone,
  cannotRenew,
  invalidLink,
  invitationNotFound,
  type Making,
  planGone,
  problemsOfTerms,
  termsOf,
} from './invitation-terms.ts';
import { describe, stateOf } from './invitation-view.ts';
import { BY_DOMAIN, type InvitationRow, type InvitationStore, type Seen } from './invitations-store.ts';
import { invitedOf } from './invited-people.ts';

export interface InvitationsDeps {
  readonly store: AccountStore;
  readonly invitationStore: InvitationStore;
  readonly accounts: Accounts;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly registration: RegistrationPolicy;
  /** Domains whose addresses may register. */
  readonly domains: readonly string[];
  /** Whether billing has a plan with this name. */
  readonly hasPlan: (name: string) => Promise<boolean>;
  /** Base URL of the console, without a slash at the end. */
  readonly apiUrl: () => string;
  readonly outbox: Outbox;
  /** See MailedLinksDeps. */
  readonly mailUrl: () => string;
}

/** A person with a link. */
export interface Joining {
  readonly token: string;
  /** The host names under which the page, or the program, sees the cloud. */
  readonly hosts: readonly string[];
}

interface NewJoin extends Joining {
  readonly username?: string | undefined;
  readonly email?: string | undefined;
  readonly password: string;
  /** The caller's. */
  readonly address: string;
}

/** Fields of an invitation, from a request or a table row. */
type Wanted = Omit<InvitationBody, 'expires_in' | 'mail'>;

export class Invitations {
  readonly #deps: InvitationsDeps;
  /** One at a time looks who is invited, and invites. */
  readonly #turns = new KeyedMutex();

  constructor(deps: InvitationsDeps) {
    this.#deps = deps;
    deps.outbox.answers(JOINING, this.#answerRequest);
  }

  /** Throws `registration_closed`, `invalid_request`, `username_taken`, `email_taken`, `plan_not_found`. */
  async create(call: Call, body: InvitationBody): Promise<CreatedInvitation> {
    this.#assertNotClosed();
    const { invitationStore, changes, clock } = this.#deps;
    const { username, email, max_uses: uses = 1, mail: isMailed = false } = body;
    this.#assertMay(isMailed, [body]);
    if (uses > 1 && (username !== undefined || email !== undefined))
      throw invalidField('max_uses', 'must be 1 for an invitation with a user name or an e-mail address');
    assertAccountFields({ username, email });
    return this.#turns.run('', async () => {
      const making = this.#making(call, { isMailed, lifeSeconds: body.expires_in });
      return changes.run(call, async (change) => {
        const seen = await invitationStore.seen(clock.now());
        const problems = [...(await this.#problemsOf(body)), ...invitedOf(seen.rows)(body)];
        assertNone(problems);
        const [made] = this.#add(change, [body], { ...making, seen });
        return made as CreatedInvitation;
      });
    });
  }

  /**
   * One invitation for each row of a table, in its order: all, or `invalid_request` with the
   * problems by line. Throws `registration_closed`.
   */
  async createMany(call: Call, body: InvitationFileBody): Promise<{ invitations: CreatedInvitation[] }> {
    this.#assertNotClosed();
    const { csv, expires_in: lifeSeconds, mail: isMailed = false, ...terms } = body;
    const rows = readInvitationTable(csv).map((row) => ({ ...row, wanted: { ...terms, ...wantedOf(row) } }));
    const { invitationStore, changes, clock, outbox } = this.#deps;
    if (isMailed) outbox.assertOn();
    return this.#turns.run('', async () => {
      const making = this.#making(call, { isMailed, lifeSeconds });
      return changes.run(call, async (change) => {
        const seen = await invitationStore.seen(clock.now());
        const invited = invitedOf(seen.rows);
        const problems: FieldProblem[] = [];
        for (const { line, wanted } of rows) {
          if (isMailed && wanted.email === undefined) problems.push(atLine(line, 'email', NEEDED));
          for (const { field, message } of [...(await this.#problemsOf(wanted)), ...invited(wanted)])
            problems.push(atLine(line, field, message));
        }
        if (problems.length > 0) throw refusal(problems);
        const wanted = rows.map((row) => row.wanted);
        return { invitations: this.#add(change, wanted, { ...making, seen }) };
      });
    });
  }

  /**
   * Requests a mail with a link that creates an account with this address, whose domain must be
   * allowed to register. Response and duration are the same whether or not an account has the
   * address. Throws `registration_closed`, `invalid_request`.
   */
  async request(recorder: Recorder, email: string): Promise<Record<string, never>> {
    const { registration, domains, outbox, changes } = this.#deps;
    if (registration !== 'domain')
      throw registrationClosed(registration === 'open' ? 'closed' : registration);
    assertAccountFields({ email });
    const recipient = foldEmail(email);
    if (!domains.includes(recipient.slice(recipient.lastIndexOf('@') + 1)))
      throw invalidField('email', `must be an address of ${domains.join(' or ')}`);
    const asked = { kind: JOINING, recipient, lifeMs: HOUR_MS, most: MOST_AN_HOUR, withinMs: HOUR_MS };
    return changes.run(recorder, (change) => {
      change.addAll(outbox.ask(asked));
      return {};
    });
  }

  /** Runs later, when no caller waits for it. */
  readonly #answerRequest: Answerer = async (change, recipient) => {
    const { store, mailUrl } = this.#deps;
    const base = mailUrl();
    const host = new URL(base).hostname;
    const holder = await store.accountByEmail(recipient);
    if (holder !== undefined && holder.email_verified_at !== null) {
      const url = `${base}/forgot-password`;
      return { ...hasAccountMail({ username: holder.username, url, host }), accountId: holder.id };
    }
    const making = {
      by: BY_DOMAIN,
      accountId: 0,
      lifeSeconds: DAY_SECONDS,
      isMailed: true,
      url: base,
      host,
    };
    const { row, token } = this.#addOne(change, { email: recipient }, { ...making, place: 0 });
    const url = linkOf(base, token);
    return { ...invitationMail({ url, host, expiresAt: formatTime(row.expires_at) }), accountId: 0 };
  };

  /** Oldest first, after `afterId`, at most `limit`. */
  async *list({ afterId, limit }: { readonly afterId: string; readonly limit: number }) {
    const { invitationStore, clock } = this.#deps;
    let last = afterId;
    for (let left = limit; left > 0; ) {
      const rows = await invitationStore.after(last, Math.min(left, BATCH));
      for (const row of rows) yield describe(row, clock.now());
      left -= rows.length;
      last = rows.at(-1)?.id ?? last;
      if (rows.length < BATCH) return;
    }
  }

  /**
   * Replaces the link, and corrects its terms: the old link stops working. Throws
   * `registration_closed`, `invitation_not_found`, `invalid_request`, `mail_not_set`,
   * `write_conflict` (used up, or revoked).
   */
  async renew(call: Call, id: string, body: RenewalBody): Promise<CreatedInvitation> {
    this.#assertNotClosed();
    const { invitationStore, changes, clock } = this.#deps;
    const { email, mail: isMailed = false, expires_in: lifeSeconds } = body;
    const known = await invitationStore.find(id);
    if (known === undefined) throw invitationNotFound();
    if (known.max_uses > 1 && email !== undefined)
      throw invalidField('email', 'is only for an invitation for one person');
    this.#assertMay(isMailed, [{ email: email ?? known.email ?? undefined }]);
    assertAccountFields({ email });
    return this.#turns.run('', async () => {
      const making = this.#making(call, { isMailed, lifeSeconds });
      return changes.run(call, async (change) => {
        const seen = await invitationStore.seen(clock.now());
        const row = await invitationStore.find(id);
        if (row === undefined) throw invitationNotFound();
        const problems = email === undefined ? [] : await this.#problemsOf({ email, plan: row.plan });
        // Another may have been invited since it expired.
        const people = { username: row.username ?? undefined, email: email ?? row.email ?? undefined };
        problems.push(...invitedOf(seen.rows.filter((other) => other.id !== id))(people));
        assertNone(problems);
        const { label = row.label } = body;
        const { token, ...link } = this.#link(making);
        const renewed = { ...row, label, email: email ?? row.email, ...link };
        change.add(turnOfAll());
        const renewal = invitationStore.renew(renewed, hashSecret(token), seen);
        change.expect(renewal, async () => cannotRenew((await invitationStore.find(id)) ?? row));
        return this.#handOver(change, renewed, { ...making, token });
      });
    });
  }

  /** Disables the link; accounts created with it stay. Throws `invitation_not_found`. */
  revoke(call: Call, id: string): Promise<Invitation> {
    const { invitationStore, changes, clock } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await invitationStore.find(id);
      if (row === undefined) throw invitationNotFound();
      const now = clock.now();
      change.add(invitationStore.revoke(id, now));
      return describe({ ...row, revoked_at: row.revoked_at ?? now }, now);
    });
  }

  /** Facts for the page of a link. Throws `invalid_link`, `registration_closed`. */
  async show(joining: Joining): Promise<ShownInvitation> {
    const row = await this.#good(joining);
    return {
      username: row.username,
      email: row.email,
      account_expires_at: formatTimeOrNull(row.account_expires_at),
      expires_at: formatTime(row.expires_at),
    };
  }

  /**
   * An account on the invitation's terms, which counts as a use in the same commit. Throws
   * `invalid_link` (unknown, used, expired, revoked or for another host name: indistinguishable),
   * `registration_closed`, and the errors of Accounts.create, which leave the link valid.
   */
  async join(recorder: Recorder, joining: NewJoin): Promise<Registration> {
    const { invitationStore, accounts, clock } = this.#deps;
    const row = await this.#good(joining);
    const { password, address } = joining;
    const username = row.username ?? joining.username;
    const email = row.email ?? joining.email;
    if (username === undefined) throw invalidField('username', 'is required');
    if (email === undefined) throw invalidField('email', 'is required');
    // Hashing the password takes time, in which the link may have been replaced.
    const used = () => invitationStore.use(hashSecret(joining.token), clock.now());
    const precede = (change: Change) => change.expect(used(), invalidLink);
    const invited = {
      id: row.id,
      plan: row.plan,
      creditsMicro: Number(row.credits_micro),
      spendCapMicro: row.spend_cap_micro === null ? null : Number(row.spend_cap_micro),
      expiresAt: row.account_expires_at,
      by: row.created_by,
      planGone: () => planGone(row.plan),
    };
    const fields = { username, email, password, address };
    // Only the holder of the mailbox has the link.
    const isConfirmed = row.is_mailed === 1 && row.email !== null;
    return accounts.createRegistered(recorder, fields, { isAdmin: false, precede, invited, isConfirmed });
  }

  #assertNotClosed(): void {
    const { registration } = this.#deps;
    if (registration === 'closed') throw registrationClosed(registration);
  }

  /** The row of a link that is creating an account. */
  async #good({ token, hosts }: Joining): Promise<InvitationRow> {
    const { invitationStore, clock } = this.#deps;
    this.#assertNotClosed();
    const row = await invitationStore.findByToken(hashSecret(token));
    if (row === undefined || stateOf(row, clock.now()) !== 'open') throw invalidLink();
    if (row.host !== '' && !hosts.includes(row.host)) throw invalidLink();
    return row;
  }

  /** Problems that the rules of single fields do not find. */
  async #problemsOf(wanted: Wanted): Promise<FieldProblem[]> {
    const { store, hasPlan, clock, outbox } = this.#deps;
    const { username, email, plan = FREE } = wanted;
    const problems: FieldProblem[] = [];
    const note = (field: string, message: string) => problems.push({ field, message });
    if (username !== undefined) {
      const folded = foldUsername(username);
      const isTaken = ACTORS.has(folded) || (await store.accountByUsername(folded)) !== undefined;
      if (isTaken) note('username', 'is taken');
    }
    if (email !== undefined) {
      const holder = await store.accountByEmail(foldEmail(email));
      const isHeld = holder !== undefined && !(outbox.isOn && holder.email_verified_at === null);
      if (isHeld) note('email', 'is taken');
    }
    if (!(await hasPlan(plan))) note('plan', `is unknown: ${plan}`);
    return [...problems, ...problemsOfTerms(wanted, clock.now())];
  }

  #assertMay(isMailed: boolean, wanted: readonly { readonly email?: string | undefined }[]): void {
    if (!isMailed) return;
    this.#deps.outbox.assertOn();
    if (wanted.some(({ email }) => email === undefined)) throw invalidField('email', NEEDED);
  }

  #making(call: Call, of: Pick<Making, 'isMailed' | 'lifeSeconds'>): Making {
    const { apiUrl, mailUrl } = this.#deps;
    const url = of.isMailed ? mailUrl() : apiUrl();
    // Over the operator's socket, the host name of the cloud is unknown.
    const { accountId } = call.principal;
    const isAnywhere = accountId === 0 && !of.isMailed;
    return {
      ...of,
      by: nameOf(call.principal),
      accountId,
      url,
      host: isAnywhere ? '' : new URL(url).hostname,
    };
  }

  #add(
    change: Change,
    wanted: readonly Wanted[],
    { seen, ...making }: Making & { readonly seen: Seen },
  ): CreatedInvitation[] {
    change.add(turnOfAll());
    return wanted.map((one, place) => {
      // The rows of this change are not among those seen before.
      const { row, token } = this.#addOne(change, one, { ...making, place, ...(place === 0 && { seen }) });
      return this.#handOver(change, row, { ...making, token });
    });
  }

  /** The link, in the response or by mail. */
  #handOver(
    change: Change,
    row: InvitationRow,
    { accountId, isMailed, url: base, host, token }: Making & { readonly token: string },
  ): CreatedInvitation {
    const { clock, outbox } = this.#deps;
    const now = clock.now();
    const url = linkOf(base, token);
    if (!isMailed) return { ...describe(row, now), url };
    const text = invitationMail({ url, host, expiresAt: formatTime(row.expires_at) });
    const lifeMs = row.expires_at - now;
    change.addAll(outbox.mail({ ...text, kind: 'invitation', accountId, to: row.email ?? '', lifeMs }));
    change.after(() => outbox.wake());
    return { ...describe(row, now), url: null };
  }

  /** A new token, and its columns. */
  #link({ lifeSeconds = DEFAULT_LIFE_SECONDS, isMailed, host }: Making) {
    const expires_at = this.#deps.clock.now() + lifeSeconds * 1000;
    const token = randomSecret(32).toString('base64url');
    return { token, host, expires_at, is_mailed: isMailed ? 1 : 0 };
  }

  #addOne(change: Change, one: Wanted, making: Making & { readonly place: number; readonly seen?: Seen }) {
    const { invitationStore, clock } = this.#deps;
    const { by, place, seen } = making;
    const now = clock.now();
    const { token, ...link } = this.#link(making);
    const row: InvitationRow = {
      // Ids sort by their time: lists keep the order of the table.
      id: newId('inv', { now: () => now + place }),
      ...link,
      label: one.label ?? '',
      username: one.username ?? null,
      email: one.email ?? null,
      plan: one.plan ?? FREE,
      ...termsOf(one, now),
      max_uses: one.max_uses ?? 1,
      uses: 0,
      created_at: now,
      revoked_at: null,
      created_by: by,
    };
    change.add(invitationStore.insert(row, hashSecret(token), seen), 'retry');
    return { row, token };
  }
}

const linkOf = (base: string, token: string) => `${base}/join#token=${token}`;

const BATCH = 200;
const DAY_SECONDS = 86_400;
const HOUR_MS = 3_600_000;
const JOINING = 'registration';
const FREE = 'free';
const NEEDED = 'is required to mail the invitation';
