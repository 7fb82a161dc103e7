/** Keeps the rules in place without which no guest is let out. */
import { AppError } from '../../errors.ts';
import { HostToolError, nft } from './host-tool.ts';
import { outboundRules } from './outbound-rules.ts';
import { readResolvers } from './resolvers.ts';

export interface OutboundGuardDeps {
  /** Guests' processes run under this user id and those after it. */
  readonly uidBase: number;
  readonly uidCount: number;
  readonly allowPrivate: boolean;
  readonly isRoot?: boolean;
  /** For tests. */
  readonly resolvConf?: string;
}

const CLOSED = 'machines cannot be given the outside';
const TURN_OFF = 'set CLOUDLET_VM_OUTBOUND=off';
const NEEDS_ROOT = `run Cloudlet as root, or ${TURN_OFF}`;
export const INSTALL_NFT = 'apt-get install nftables';

export class OutboundGuard {
  readonly #deps: OutboundGuardDeps;
  #refusal: AppError | null = null;

  constructor(deps: OutboundGuardDeps) {
    this.#deps = deps;
  }

  /**
   * Puts the rules in place, again if they were. Nobody takes them away: guests outlive us. Throws
   * `engine_unavailable` with the fix when the host does not let us, and no guest must be let out then.
   */
  async ensure(): Promise<void> {
    this.#refusal = await this.#place();
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** What the last ensure() threw; null: the rules were in place then. */
  get refusal(): AppError | null {
    return this.#refusal;
  }

  async #place(): Promise<AppError | null> {
    const { isRoot = process.getuid?.() === 0, resolvConf, ...rules } = this.#deps;
    // Without root all guests share our own user, which no rule can tell apart from us.
    if (!isRoot) return refusal(`${CLOSED}: only root can close this host to them`, NEEDS_ROOT);
    try {
      await nft(outboundRules({ ...rules, resolvers: readResolvers(resolvConf) }));
      return null;
    } catch (error) {
      const { message, isMissing } = error instanceof HostToolError ? error : new HostToolError('nft', false);
      const mend = isMissing ? INSTALL_NFT : "give Cloudlet CAP_NET_ADMIN and the kernel's nf_tables";
      return refusal(`${CLOSED}: ${message}`, `${mend}, or ${TURN_OFF}`, error);
    }
  }
}

function refusal(message: string, hint: string, cause?: unknown): AppError {
  return new AppError('engine_unavailable', message, { hint, cause });
}
