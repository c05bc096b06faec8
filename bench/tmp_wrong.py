import sys, json, time
import torch
from bench.loopnest.matrix_device import ROWS
import warploom
from warploom.pipeline import exploring
from warploom.pipeline.exploring import nest_of, quick_for
from warploom.pipeline.strategic import strategies_of
from warploom.pipeline.matrix_nest import nest_by
from warploom.pipeline.nest import recipe_of
from warploom.pipeline.drawn import *
from concurrent.futures import ProcessPoolExecutor
import numpy as np
def work(a):
    name, vi, seed = a
    nest=nest_of(ROWS[name].nest()); v=strategies_of(nest,None,"default",False).variants[vi]
    own=nest_by(recipe_of(v,nest))
    out=[]
    d=leaves_of(own,Asked(4,(seed,7)))
    for r in np.flatnonzero(d.arrived):
        leaf=d.leaves.take(slice(int(r),int(r)+1))
        try: m=made_of(own,leaf,0,"sm_90",set())
        except Exception as e: continue
        out.append((vi,str(own.tiling(leaf)),m))
    return out
if __name__=="__main__":
    end=time.time()+float(sys.argv[1])
    with ProcessPoolExecutor(15) as pool:
        for name in sys.argv[2:]:
            nest=nest_of(ROWS[name].nest()); vs=strategies_of(nest,None,"default",False).variants
            q=quick_for(nest,False,"tree")
            jobs=[(name,vi,s) for s in range(8) for vi in range(min(len(vs),2))]
            n=w=0
            for got in pool.map(work,jobs):
                for vi,t,m in got:
                    n+=1
                    res=[]
                    for k in range(3):
                        try: q.time(m,1e12); res.append("ok")
                        except Exception as e: res.append(str(e)[-40:])
                    if any(r!="ok" for r in res): w+=1; print(name,vi,t,m.launches[0].grid,res,flush=True)
            print(name,n,"tried",w,"wrong",flush=True)
