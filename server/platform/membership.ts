/**
 * The nodes with which a process shares its metadata, as it knows them. A cloud of one process has no
 * other node: ALONE answers without asking anybody.
 */

export interface Membership {
  /** `nod-…`; '' for a cloud of one process. */
  readonly nodeId: string;
  /** Other nodes may change what this one has read. */
  readonly isShared: boolean;
  /** This node has the machines, the images and the servers of databases. */
  readonly isHost: boolean;
  /** False while the metadata take no beat of this node: what it remembers may be out of date. */
  isCurrent(): boolean;
  /** True once that node can store nothing more, or has left. */
  isGone(nodeId: string): boolean;
  /** Takes the lease for this node if no live node has it, and keeps it. False: another one has it. */
  holds(lease: string): Promise<boolean>;
}

/** One process with metadata of its own. */
export const ALONE: Membership = {
  nodeId: '',
  isShared: false,
  isHost: true,
  isCurrent: () => true,
  isGone: () => false,
  holds: async () => true,
};
