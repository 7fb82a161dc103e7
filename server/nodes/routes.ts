/** Nodes over REST, for administrators. */
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Nodes } from './nodes.ts';
import { Node, NodePath } from './schema.ts';

const common = { tag: 'admin', permission: 'admin' } as const;
const NODE = '/api/admin/nodes/{node_id}';
const errors = ['not_a_cluster', 'node_not_found', 'node_invalid_state'] as const;

export function nodeRoutes(nodes: Nodes): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/admin/nodes',
      name: 'adminListNodes',
      summary: 'List the nodes of the cluster',
      description: 'A cloud of one process has one entry, `self`.',
      responses: { 200: Type.Array(Node) },
      handler: () => nodes.list(),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: `${NODE}/drain`,
      name: 'adminDrainNode',
      summary: 'Drain a node',
      description:
        '`/readyz` of the node returns 503 within a second, so proxies send it no new requests, and it takes no ' +
        'leases. The node answers requests until it is stopped. A restart also ends the draining.',
      params: NodePath,
      isRepeatable: true,
      responses: { 200: Node },
      errors,
      handler: (call) => nodes.change(call, call.params.node_id, 'drained'),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: `${NODE}/resume`,
      name: 'adminResumeNode',
      summary: 'End the draining of a node',
      params: NodePath,
      isRepeatable: true,
      responses: { 200: Node },
      errors,
      handler: (call) => nodes.change(call, call.params.node_id, 'resumed'),
    }),
    defineRoute({
      ...common,
      method: 'DELETE',
      path: NODE,
      name: 'adminForgetNode',
      summary: 'Remove a node that has left or is lost from the list',
      description: 'A node that starts again is listed again.',
      params: NodePath,
      isRepeatable: true,
      responses: { 200: Node },
      errors,
      handler: (call) => nodes.forget(call, call.params.node_id),
    }),
  ];
}
