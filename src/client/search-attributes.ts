import type { Client } from '@temporalio/client';
import { TypedSearchAttributes, defineSearchAttributeKey } from '@temporalio/common';
import { SEARCH_ATTRIBUTES } from '../protocol.ts';

/** How long a server may take to know what it was just told. */
const KNOWN_AFTER_MS = 10_000;
const POLL_MS = 200;

// Numbers of temporal.api.enums.v1.IndexedValueType.
const INDEXED_VALUE_TYPES = { KEYWORD: 2, INT: 3, DOUBLE: 4 } as const;

/**
 * Makes sure that the namespace knows errand's search attributes. False when they cannot be registered (`warn` is told
 * why): the run is then started without them, since the server refuses what it does not know.
 */
export async function ensureSearchAttributes(
  client: Client,
  namespace: string,
  warn: (line: string) => void,
): Promise<boolean> {
  try {
    const missing = await missingAttributes(client, namespace);
    if (missing.length === 0) return true;
    const searchAttributes = Object.fromEntries(
      missing.map((name) => [name, INDEXED_VALUE_TYPES[SEARCH_ATTRIBUTES[name]]]),
    );
    await client.connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
    return await becomeKnown(client, namespace);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    warn(`Search attributes are left out: they cannot be registered in namespace ${namespace} (${reason}).`);
    return false;
  }
}

/** What a root is started with. */
export function rootAttributes(agentType: string): TypedSearchAttributes {
  return new TypedSearchAttributes([
    { key: defineSearchAttributeKey('AgentType', 'KEYWORD'), value: agentType },
    { key: defineSearchAttributeKey('AgentDepth', 'INT'), value: 0 },
    { key: defineSearchAttributeKey('AgentStatus', 'KEYWORD'), value: 'running' },
  ]);
}

type AttributeName = keyof typeof SEARCH_ATTRIBUTES;

async function missingAttributes(client: Client, namespace: string): Promise<readonly AttributeName[]> {
  const { customAttributes } = await client.connection.operatorService.listSearchAttributes({ namespace });
  const names = Object.keys(SEARCH_ATTRIBUTES) as AttributeName[];
  const wrong = names.find(
    (name) =>
      (customAttributes[name] ?? INDEXED_VALUE_TYPES[SEARCH_ATTRIBUTES[name]]) !==
      INDEXED_VALUE_TYPES[SEARCH_ATTRIBUTES[name]],
  );
  if (wrong !== undefined)
    throw new Error(`${wrong} is there already with another type than ${SEARCH_ATTRIBUTES[wrong]}`);
  return names.filter((name) => customAttributes[name] === undefined);
}

async function becomeKnown(client: Client, namespace: string): Promise<boolean> {
  const deadlineMs = Date.now() + KNOWN_AFTER_MS;
  while ((await missingAttributes(client, namespace)).length > 0) {
    if (Date.now() > deadlineMs) throw new Error('the server does not show them after 10 s');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return true;
}
