/** A program that HostProcesses runs. */

export interface ForeignProgram {
  /** Lower case letters, digits and hyphens; unique among running processes. */
  readonly name: string;
  /** Absolute path, in the system's folders or in `readOnly`. */
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Id of its user and group, used by nothing else while it runs; null: ours. */
  readonly uid: number | null;
  /** Absolute. Working directory and only writable folder; must belong to its user. */
  readonly folder: string;
  /** Visible files and folders, absolute. They must not contain secrets. */
  readonly readOnly?: readonly string[];
  /** `none`: not even local addresses, if isolation() supports it. Unix sockets always work. */
  readonly network: 'none' | 'host';
  /** Limit of the process tree; without control groups, of each process' data. */
  readonly memoryMb: number;
  /**
   * Address space that it reserves besides and never fills, as V8 does for code. When given, data is limited
   * for each process, so that a process that can handle a failed allocation is not killed for it.
   */
  readonly reservedMb?: number;
  /** Processes and threads; enforced if it has its own user or control group. Default 1024. */
  readonly maxProcesses?: number;
  /** Processor time per process. Default: unlimited. */
  readonly cpuSeconds?: number;
  /** Maximum file size, MiB. Default: unlimited. */
  readonly fileMb?: number;
  /** Maximum memory of /tmp and /dev/shm, where they are private. Default 64. */
  readonly temporaryMb?: number;
}

/**
 * A program that confines itself, as QEMU does: its own sandbox forbids it to start programs and to gain
 * rights. It gets no view and no namespaces, and sees the files that its user may see. The caller must set
 * its limits (`cgroups`) before it processes untrusted data.
 */
export interface SelfConfinedProgram extends Pick<ForeignProgram, 'name' | 'command' | 'args' | 'env'> {
  /** Numbers of its user and group; null: ours. */
  readonly user: { readonly uid: number; readonly gid: number } | null;
  /** Working directory, absolute. Its parents may be closed to the user of the process. */
  readonly folder: string;
  /** A command that opens a device as our user, before the user changes, and then runs the rest. */
  readonly opener: readonly string[];
}
