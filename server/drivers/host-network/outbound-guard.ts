/** Maintains the rules that isolate this host from guests' processes. */
import { AppError } from '../../platform/errors.ts';
import type { NoOtherUsers } from '../../platform/host/other-users.ts';
import type { CloudClaim } from './cloud-claim.ts';
import { HostToolError, nft } from './host-tool.ts';
import { outboundRules } from './outbound-rules.ts';
import { readResolvers } from './resolvers.ts';

export interface OutboundGuardDeps {
  /** Guests may open outbound connections; false: none at all. */
  readonly letsOut: boolean;
  /** First user id of guests' processes. */
  readonly uidBase: number;
  readonly uidCount: number;
  readonly allowPrivate: boolean;
  /** Why guests have no users of their own, which rules match on; null: they have. */
  readonly noUsers: NoOtherUsers | null;
  readonly claim: CloudClaim;
  /** For tests. */
  readonly resolvConf?: string;
}

const CLOSED = 'outbound connections of virtual machines are unavailable';
const TURN_OFF = 'set CLOUDLET_VM_OUTBOUND=off';
const WEAKER =
  'virtual machines work, with one less layer of isolation: a guest that escapes QEMU can reach every port of ' +
  'this host. This matters if untrusted users have virtual machines here';
export const INSTALL_NFT = 'apt-get install nftables';

export class OutboundGuard {
  readonly #deps: OutboundGuardDeps;
  #refusal: AppError | null = null;
  #isPlaced = false;

  constructor(deps: OutboundGuardDeps) {
    this.#deps = deps;
  }

  get letsOut(): boolean {
    return this.#deps.letsOut;
  }

  /**
   * Adds or replaces the rules. They remain after this process ends, as guests do, and another cloud with the
   * same users may need them: removeLeftGuards() removes unused ones. Throws `engine_unavailable` with the
   * fix if the host does not allow this: then no guest may open outbound connections, and the other guests
   * have one layer of isolation less.
   */
  async ensure(): Promise<void> {
    this.#refusal = await this.#place();
    this.#isPlaced ||= this.#refusal === null;
    if (this.#refusal !== null) throw this.#refusal;
  }

  /**
   * For guests without outbound access: adds the rules if they are missing. Never rejects: the engine's own
   * network sends no packets of such a guest, with or without the rules.
   */
  async close(): Promise<void> {
    if (!this.#isPlaced) await this.ensure().catch(() => undefined);
  }

  /** Error of the last ensure(); null: the rules are in place. */
  get refusal(): AppError | null {
    return this.#refusal;
  }

  async #place(): Promise<AppError | null> {
    const { noUsers, resolvConf, claim, ...rules } = this.#deps;
    if (noUsers !== null) return this.#refuse(noUsers.problem, noUsers.fix);
    try {
      const comment = (await claim.hold()) ? claim.comment : null;
      await nft(outboundRules({ ...rules, resolvers: readResolvers(resolvConf), comment }));
      return null;
    } catch (error) {
      const { message, isMissing } = error instanceof HostToolError ? error : new HostToolError('nft', false);
      const mend = isMissing ? INSTALL_NFT : "give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables";
      return this.#refuse(message, mend, error);
    }
  }

  #refuse(problem: string, mend: string, cause?: unknown): AppError {
    const { letsOut } = this.#deps;
    const message = letsOut ? `${CLOSED}: ${problem}` : `${WEAKER}. The reason: ${problem}`;
    const hint = letsOut ? `${mend}, or ${TURN_OFF}` : mend;
    return new AppError('engine_unavailable', message, { hint, cause });
  }
}
