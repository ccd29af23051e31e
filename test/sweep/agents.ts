import { readFileSync } from 'node:fs';
import type { LedgerEntry, Step } from '../../src/simulator/index.ts';
import { transcriptFile } from '../../src/store/layout.ts';
import { listAgents } from '../../src/store/listing.ts';
import { readTranscript } from '../../src/store/read.ts';
import type { AgentMeta, TranscriptRecord } from '../../src/store/records.ts';
import type { JobRun } from './run.ts';
import type { World } from './world.ts';

/** An agent of an ended run: what its files say, and what the model server says of it. */
export interface Agent {
  readonly meta: AgentMeta;
  readonly role: string;
  readonly records: readonly TranscriptRecord[];
  /** Of its transcript, as they are in the file. */
  readonly lines: readonly string[];
  /** Requests the model server got from it. */
  readonly served: readonly LedgerEntry[];
  /** What the model server said in a turn; undefined: it was never asked. */
  said(turn: number): Step | undefined;
}

export async function readAgents(world: World, run: JobRun): Promise<Agent[]> {
  const { agents } = await listAgents(world.home, run.stem);
  const ledger = world.simulator.ledger();
  return Promise.all(
    agents.map(async (meta) => {
      const file = transcriptFile(world.home, { ...meta, transcript: run.stem });
      const { records } = await readTranscript(file);
      const role = roleIn(JSON.stringify(records.find((record) => record.type === 'message')));
      const served = ledger.filter(({ agentMarker }) => agentMarker.includes(`job=${run.job} role=${role}]`));
      const said = (turn: number): Step | undefined => world.said(run.job, role, turn);
      return { meta, role, records, served, said, lines: readFileSync(file, 'utf8').split('\n') };
    }),
  );
}

function roleIn(text: string | undefined): string {
  return /role=(\w+)\]\]/.exec(text ?? '')?.[1] ?? 'unknown';
}
