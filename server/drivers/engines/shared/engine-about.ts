/** The contents of an engine's `about.ts`: its description, how it is built, and its facts for operators. */
import type { Config } from '../../../config/config.ts';
import type { Engine, EngineDatabase } from '../../../databases/engine.ts';
import type { EngineDescription } from '../../../databases/engine-description.ts';
import type { HranaCalls } from '../../../databases/hrana-calls.ts';
import type { Finding } from '../../../platform/finding.ts';
import type { ChildEngineOptions } from '../../engine-children/child-engine.ts';
import type { AccountOptions } from '../../managed-server/accounts/account-kind.ts';
import type { ServerUsers } from '../../managed-server/processes/server-users.ts';
import type { OfferedPorts } from '../../offered-ports.ts';
import type { Part } from '../../preparation/preparing.ts';

export interface EngineAbout extends EngineDescription {
  /** Folder of its data, in the data directory. */
  readonly folder: string;
  /** Programs that the set-up fetches; null: none needed. */
  readonly programs: EnginePrograms | null;
  /** The bytes that refuse the login of a locked-out user; missing: the protocol has none. */
  refusal?(text: string): Buffer;
  readonly development: Development;
  /** Whether `cloudlet databases upgrade` moves its data to a newer major version. */
  readonly canUpgrade: boolean;
  /** Lines of `cloudlet doctor`. */
  doctor(config: Config): Promise<Finding[]>;
  /** Nothing is started. */
  build(tools: EngineTools): Promise<BuiltEngine>;
}

interface EnginePrograms {
  readonly part: Part;
  /** Whether the host has the programs, so that no download is needed; missing: always download. */
  isOnHost?(): Promise<boolean>;
}

/** Contribution to `cloudlet dev`. */
interface Development {
  /** Whether the engine is used by a run that names no engines. */
  readonly isDefault: boolean;
  /** Names of the environment variables, for the help. */
  readonly names: readonly string[];
  /** Values of these variables. */
  variables(connection: {
    readonly uri: string;
    readonly password: string;
  }): Readonly<Record<string, string>>;
}

/** Everything that engines are built with. */
export interface EngineTools {
  readonly config: Config;
  /** For a restore drill: only its cloud can reach the databases. */
  readonly isPrivate: boolean;
  /** For engines with one process per active database. */
  readonly children: Omit<ChildEngineOptions, 'folder'>;
  /** For engines with database servers. */
  readonly managed: ManagedTools;
  readonly serverUsers: ServerUsers;
  /** Address of the data origin; known once it listens. */
  readonly dataUrl: () => string;
  /** Ports to publish to other nodes; undefined: there are no other nodes. */
  readonly ports: OfferedPorts | undefined;
  /** Counts bytes that left this cloud. */
  readonly sent: (database: EngineDatabase, bytes: number) => void;
}

type ManagedTools = Pick<
  AccountOptions,
  'processes' | 'alarms' | 'isDiskLow' | 'warn' | 'keepsLogs' | 'servers'
> & { readonly tls: NonNullable<AccountOptions['tls']> };

export interface BuiltEngine {
  readonly engine: Engine;
  /** Starts its existing servers. */
  wake?(): unknown;
  /** Starts the server of that listener, if it belongs to the engine. */
  wanted?(listener: string): unknown;
  /** Moves its data to the newest major version; null: there was nothing to do. */
  upgrade?(): Promise<{ readonly from: string; readonly to: string } | null>;
  /** Missing: drivers of libSQL do not reach it. */
  readonly hrana?: HranaCalls;
}
