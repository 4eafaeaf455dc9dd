print("ieum")
