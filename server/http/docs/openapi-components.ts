/** The components of openapi.json: everything with a name (`$id`) is listed once. */
import { isDeepStrictEqual } from 'node:util';
import { SHARED_DESCRIPTION } from '../../platform/json/json-schema.ts';

// biome-ignore lint/suspicious/noExplicitAny: JSON Schemas and parts of the document, of any shape
type Node = Readonly<Record<string, any>>;
type Kind = 'schemas' | 'parameters' | 'responses';

/** Collects the components while the operations are rewritten. */
export class Components {
  readonly #found: Record<Kind, Record<string, Node>> = { schemas: {}, parameters: {}, responses: {} };

  /** The collected components, by name. */
  sorted(): Record<Kind, Node> {
    const byName = (nodes: Node) =>
      Object.fromEntries(Object.entries(nodes).sort(([a], [b]) => (a < b ? -1 : 1)));
    return mapMembers(this.#found, byName) as Record<Kind, Node>;
  }

  /** The operation with references instead of named nodes. */
  operation(operation: Node): Node {
    const { parameters, requestBody, responses } = operation;
    return {
      ...operation,
      parameters: parameters.map((each: Node) =>
        this.#refer('parameters', { ...each, schema: this.#schema(each.schema) }),
      ),
      ...(requestBody === undefined ? {} : { requestBody: this.#withContent(requestBody) }),
      responses: mapMembers(responses, (each) => this.#refer('responses', this.#withContent(each))),
    };
  }

  #withContent(node: Node): Node {
    const content = mapMembers(node.content, ({ schema, ...rest }) => ({
      schema: this.#schema(schema),
      ...rest,
    }));
    return { ...node, content };
  }

  #schema(node: Node): Node {
    const { properties, items, anyOf, additionalProperties } = node;
    const inner = {
      ...(properties && { properties: mapMembers(properties, (each) => this.#schema(defaultInWords(each))) }),
      ...(items && { items: this.#schema(items) }),
      ...(anyOf && { anyOf: anyOf.map((each: Node) => this.#schema(each)) }),
      ...(typeof additionalProperties === 'object' && {
        additionalProperties: this.#schema(additionalProperties),
      }),
    };
    return this.#refer('schemas', plain({ ...node, ...inner }));
  }

  /** A reference if the node has a name; a differing description is kept beside it. */
  #refer(kind: Kind, node: Node): Node {
    const { $id: name, [SHARED_DESCRIPTION]: shared, ...unnamed } = node;
    if (name === undefined) return node;
    const known =
      this.#found[kind][name] ?? (shared === undefined ? unnamed : { ...unnamed, description: shared });
    if (!isDeepStrictEqual(rulesOf(unnamed), rulesOf(known)))
      throw new Error(`Two ${kind} are called ${name}`);
    this.#found[kind][name] = known;
    const { description } = unnamed;
    const isOwn = description !== undefined && description !== known.description;
    return { $ref: `#/components/${kind}/${name}`, ...(isOwn ? { description } : {}) };
  }
}

function rulesOf({ description: _, ...rules }: Node): Node {
  return rules;
}

/** Code generators treat a member with a default as always present, in requests too. */
function defaultInWords(node: Node): Node {
  const { default: without, ...rest } = node;
  const { description = '' } = rest;
  const words = without === undefined || without === '' ? '' : `Default: ${String(without)}`;
  const said = [description, words].filter((part) => part !== '').join('. ');
  return said === '' ? rest : { ...rest, description: said };
}

/** Rewritten to the JSON Schema keywords that code generators support best. */
function plain({ anyOf, patternProperties, ...rest }: Node): Node {
  const { enum: choices } = rest;
  if (patternProperties) return { ...rest, additionalProperties: Object.values(patternProperties)[0] };
  if (choices?.every((each: unknown) => typeof each === 'string')) return { type: 'string', ...rest };
  if (anyOf === undefined) return rest;
  const isType = (each: Node) => Object.keys(each).join() === 'type';
  return anyOf.every(isType) ? { type: anyOf.map(({ type }: Node) => type), ...rest } : { anyOf, ...rest };
}

function mapMembers(node: Node, change: (member: Node) => unknown): Node {
  return Object.fromEntries(Object.entries(node).map(([name, member]) => [name, change(member)]));
}
